"""The columns of PostgreSQL 15's system tables, so that clients' questions about them fit.

One table per paragraph: its name, then its columns, each `name` (text) or `name:type`.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["system_tables"]

_TYPES = {
    "oid": pa.int64(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "bool": pa.bool_(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "timestamp": pa.timestamp("us"),
    "text": pa.string(),
}
_TABLES = """
pg_am oid:oid amname amhandler:oid amtype
pg_attrdef oid:oid adrelid:oid adnum:int2 adbin
pg_attribute attrelid:oid attname atttypid:oid attstattarget:int4 attlen:int2 attnum:int2
    attndims:int4 attcacheoff:int4 atttypmod:int4 attbyval:bool attalign attstorage attcompression
    attnotnull:bool atthasdef:bool atthasmissing:bool attidentity attgenerated attisdropped:bool
    attislocal:bool attinhcount:int4 attcollation:oid attacl:text[] attoptions:text[]
    attfdwoptions:text[] attmissingval:text[]
pg_auth_members roleid:oid member:oid grantor:oid admin_option:bool
pg_available_extensions name default_version installed_version comment
pg_cast oid:oid castsource:oid casttarget:oid castfunc:oid castcontext castmethod
pg_class oid:oid relname relnamespace:oid reltype:oid reloftype:oid relowner:oid relam:oid
    relfilenode:oid reltablespace:oid relpages:int4 reltuples:float4 relallvisible:int4
    reltoastrelid:oid relhasindex:bool relisshared:bool relpersistence relkind relnatts:int2
    relchecks:int2 relhasrules:bool relhastriggers:bool relhassubclass:bool relrowsecurity:bool
    relforcerowsecurity:bool relispopulated:bool relreplident relispartition:bool relrewrite:oid
    relfrozenxid:oid relminmxid:oid relacl:text[] reloptions:text[] relpartbound
pg_collation oid:oid collname collnamespace:oid collowner:oid collprovider
    collisdeterministic:bool collencoding:int4 collcollate collctype colliculocale collversion
pg_constraint oid:oid conname connamespace:oid contype condeferrable:bool condeferred:bool
    convalidated:bool conrelid:oid contypid:oid conindid:oid conparentid:oid confrelid:oid
    confupdtype confdeltype confmatchtype conislocal:bool coninhcount:int4 connoinherit:bool
    conkey:int2[] confkey:int2[] conpfeqop:oid[] conppeqop:oid[] conffeqop:oid[]
    confdelsetcols:int2[] conexclop:oid[] conbin
pg_database oid:oid datname datdba:oid encoding:int4 datlocprovider datistemplate:bool
    datallowconn:bool datconnlimit:int4 datfrozenxid:oid datminmxid:oid dattablespace:oid
    datcollate datctype daticulocale datcollversion datacl:text[]
pg_db_role_setting setdatabase:oid setrole:oid setconfig:text[]
pg_default_acl oid:oid defaclrole:oid defaclnamespace:oid defaclobjtype defaclacl:text[]
pg_depend classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid refobjsubid:int4 deptype
pg_description objoid:oid classoid:oid objsubid:int4 description
pg_enum oid:oid enumtypid:oid enumsortorder:float4 enumlabel
pg_event_trigger oid:oid evtname evtevent evtowner:oid evtfoid:oid evtenabled evttags:text[]
pg_extension oid:oid extname extowner:oid extnamespace:oid extrelocatable:bool extversion
    extconfig:oid[] extcondition:text[]
pg_get_keywords word catcode catdesc
pg_foreign_data_wrapper oid:oid fdwname fdwowner:oid fdwhandler:oid fdwvalidator:oid fdwacl:text[]
    fdwoptions:text[]
pg_foreign_server oid:oid srvname srvowner:oid srvfdw:oid srvtype srvversion srvacl:text[]
    srvoptions:text[]
pg_foreign_table ftrelid:oid ftserver:oid ftoptions:text[]
pg_index indexrelid:oid indrelid:oid indnatts:int2 indnkeyatts:int2 indisunique:bool
    indnullsnotdistinct:bool indisprimary:bool indisexclusion:bool indimmediate:bool
    indisclustered:bool indisvalid:bool indcheckxmin:bool indisready:bool indislive:bool
    indisreplident:bool indkey:int2[] indcollation:oid[] indclass:oid[] indoption:int2[] indexprs
    indpred
pg_indexes schemaname tablename indexname tablespace indexdef
pg_inherits inhrelid:oid inhparent:oid inhseqno:int4 inhdetachpending:bool
pg_language oid:oid lanname lanowner:oid lanispl:bool lanpltrusted:bool lanplcallfoid:oid
    laninline:oid lanvalidator:oid lanacl:text[]
pg_locks locktype database:oid relation:oid page:int4 tuple:int2 virtualxid transactionid:oid
    classid:oid objid:oid objsubid:int2 virtualtransaction pid:int4 mode granted:bool
    fastpath:bool waitstart:timestamp
pg_matviews schemaname matviewname matviewowner tablespace hasindexes:bool ispopulated:bool
    definition
pg_namespace oid:oid nspname nspowner:oid nspacl:text[]
pg_opclass oid:oid opcmethod:oid opcname opcnamespace:oid opcowner:oid opcfamily:oid opcintype:oid
    opcdefault:bool opckeytype:oid
pg_operator oid:oid oprname oprnamespace:oid oprowner:oid oprkind oprcanmerge:bool oprcanhash:bool
    oprleft:oid oprright:oid oprresult:oid oprcom:oid oprnegate:oid oprcode:oid oprrest:oid
    oprjoin:oid
pg_partitioned_table partrelid:oid partstrat partnatts:int2 partdefid:oid partattrs:int2[]
    partclass:oid[] partcollation:oid[] partexprs
pg_policies schemaname tablename policyname permissive roles:text[] cmd qual with_check
pg_policy oid:oid polname polrelid:oid polcmd polpermissive:bool polroles:oid[] polqual
    polwithcheck
pg_proc oid:oid proname pronamespace:oid proowner:oid prolang:oid procost:float4 prorows:float4
    provariadic:oid prosupport:oid prokind prosecdef:bool proleakproof:bool proisstrict:bool
    proretset:bool provolatile proparallel pronargs:int2 pronargdefaults:int2 prorettype:oid
    proargtypes:oid[] proallargtypes:oid[] proargmodes:text[] proargnames:text[] proargdefaults
    protrftypes:oid[] prosrc probin prosqlbody proconfig:text[] proacl:text[]
pg_publication oid:oid pubname pubowner:oid puballtables:bool pubinsert:bool pubupdate:bool
    pubdelete:bool pubtruncate:bool pubviaroot:bool
pg_publication_namespace oid:oid pnpubid:oid pnnspid:oid
pg_publication_rel oid:oid prpubid:oid prrelid:oid prqual prattrs:int2[]
pg_range rngtypid:oid rngsubtype:oid rngmultitypid:oid rngcollation:oid rngsubopc:oid
    rngcanonical:oid rngsubdiff:oid
pg_rewrite oid:oid rulename ev_class:oid ev_type ev_enabled is_instead:bool ev_qual ev_action
pg_roles rolname rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool
    rolcanlogin:bool rolreplication:bool rolconnlimit:int4 rolpassword rolvaliduntil:timestamp
    rolbypassrls:bool rolconfig:text[] oid:oid
pg_rules schemaname tablename rulename definition
pg_seclabels objoid:oid classoid:oid objsubid:int4 objtype objnamespace:oid objname provider label
pg_sequence seqrelid:oid seqtypid:oid seqstart:int8 seqincrement:int8 seqmax:int8 seqmin:int8
    seqcache:int8 seqcycle:bool
pg_sequences schemaname sequencename sequenceowner data_type:oid start_value:int8 min_value:int8
    max_value:int8 increment_by:int8 cycle:bool cache_size:int8 last_value:int8
pg_settings name setting unit category short_desc extra_desc context vartype source min_val
    max_val enumvals:text[] boot_val reset_val sourcefile sourceline:int4 pending_restart:bool
pg_shdescription objoid:oid classoid:oid description
pg_stat_activity datid:oid datname pid:int4 leader_pid:int4 usesysid:oid usename application_name
    client_addr client_hostname client_port:int4 backend_start:timestamp xact_start:timestamp
    query_start:timestamp state_change:timestamp wait_event_type wait_event state backend_xid:oid
    backend_xmin:oid query_id:int8 query backend_type
pg_stat_user_tables relid:oid schemaname relname seq_scan:int8 seq_tup_read:int8 idx_scan:int8
    idx_tup_fetch:int8 n_tup_ins:int8 n_tup_upd:int8 n_tup_del:int8 n_tup_hot_upd:int8
    n_live_tup:int8 n_dead_tup:int8 n_mod_since_analyze:int8 n_ins_since_vacuum:int8
    last_vacuum:timestamp last_autovacuum:timestamp last_analyze:timestamp
    last_autoanalyze:timestamp vacuum_count:int8 autovacuum_count:int8 analyze_count:int8
    autoanalyze_count:int8
pg_statistic_ext oid:oid stxrelid:oid stxname stxnamespace:oid stxowner:oid stxstattarget:int4
    stxkeys:int2[] stxkind:text[] stxexprs
pg_subscription oid:oid subdbid:oid subskiplsn subname subowner:oid subenabled:bool subbinary:bool
    substream:bool subtwophasestate subdisableonerr:bool subconninfo subslotname subsynccommit
    subpublications:text[]
pg_tables schemaname tablename tableowner tablespace hasindexes:bool hasrules:bool
    hastriggers:bool rowsecurity:bool
pg_tablespace oid:oid spcname spcowner:oid spcacl:text[] spcoptions:text[]
pg_timezone_names name abbrev utc_offset is_dst:bool
pg_trigger oid:oid tgrelid:oid tgparentid:oid tgname tgfoid:oid tgtype:int2 tgenabled
    tgisinternal:bool tgconstrrelid:oid tgconstrindid:oid tgconstraint:oid tgdeferrable:bool
    tginitdeferred:bool tgnargs:int2 tgattr:int2[] tgargs tgqual tgoldtable tgnewtable
pg_ts_config oid:oid cfgname cfgnamespace:oid cfgowner:oid cfgparser:oid
pg_type oid:oid typname typnamespace:oid typowner:oid typlen:int2 typbyval:bool typtype
    typcategory typispreferred:bool typisdefined:bool typdelim typrelid:oid typsubscript:oid
    typelem:oid typarray:oid typinput:oid typoutput:oid typreceive:oid typsend:oid typmodin:oid
    typmodout:oid typanalyze:oid typalign typstorage typnotnull:bool typbasetype:oid
    typtypmod:int4 typndims:int4 typcollation:oid typdefaultbin typdefault typacl:text[]
pg_user usename usesysid:oid usecreatedb:bool usesuper:bool userepl:bool usebypassrls:bool passwd
    valuntil:timestamp useconfig:text[]
pg_user_mappings umid:oid srvid:oid srvname umuser:oid usename umoptions:text[]
pg_views schemaname viewname viewowner definition
information_schema.tables table_catalog table_schema table_name table_type
    self_referencing_column_name reference_generation user_defined_type_catalog
    user_defined_type_schema user_defined_type_name is_insertable_into is_typed commit_action
information_schema.columns table_catalog table_schema table_name column_name ordinal_position:int4
    column_default is_nullable data_type character_maximum_length:int4 character_octet_length:int4
    numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4
    interval_type interval_precision:int4 character_set_catalog character_set_schema
    character_set_name collation_catalog collation_schema collation_name domain_catalog
    domain_schema domain_name udt_catalog udt_schema udt_name scope_catalog scope_schema
    scope_name maximum_cardinality:int4 dtd_identifier is_self_referencing is_identity
    identity_generation identity_start identity_increment identity_maximum identity_minimum
    identity_cycle is_generated generation_expression is_updatable
information_schema.schemata catalog_name schema_name schema_owner default_character_set_catalog
    default_character_set_schema default_character_set_name sql_path
information_schema.views table_catalog table_schema table_name view_definition check_option
    is_updatable is_insertable_into is_trigger_updatable is_trigger_deletable
    is_trigger_insertable_into
information_schema.table_constraints constraint_catalog constraint_schema constraint_name
    table_catalog table_schema table_name constraint_type is_deferrable initially_deferred
    enforced nulls_distinct
information_schema.key_column_usage constraint_catalog constraint_schema constraint_name
    table_catalog table_schema table_name column_name ordinal_position:int4
    position_in_unique_constraint:int4
information_schema.referential_constraints constraint_catalog constraint_schema constraint_name
    unique_constraint_catalog unique_constraint_schema unique_constraint_name match_option
    update_rule delete_rule
information_schema.constraint_column_usage table_catalog table_schema table_name column_name
    constraint_catalog constraint_schema constraint_name
information_schema.sequences sequence_catalog sequence_schema sequence_name data_type
    numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 start_value
    minimum_value maximum_value increment cycle_option
information_schema.routines specific_catalog specific_schema specific_name routine_catalog
    routine_schema routine_name routine_type module_catalog module_schema module_name udt_catalog
    udt_schema udt_name data_type character_maximum_length:int4 character_octet_length:int4
    character_set_catalog character_set_schema character_set_name collation_catalog
    collation_schema collation_name numeric_precision:int4 numeric_precision_radix:int4
    numeric_scale:int4 datetime_precision:int4 interval_type interval_precision:int4
    type_udt_catalog type_udt_schema type_udt_name scope_catalog scope_schema scope_name
    maximum_cardinality:int4 dtd_identifier routine_body routine_definition external_name
    external_language parameter_style is_deterministic sql_data_access is_null_call sql_path
    schema_level_routine max_dynamic_result_sets:int4 is_user_defined_cast is_implicitly_invocable
    security_type to_sql_specific_catalog to_sql_specific_schema to_sql_specific_name as_locator
    created:timestamp last_altered:timestamp new_savepoint_level is_udt_dependent
    result_cast_from_data_type result_cast_as_locator result_cast_char_max_length:int4
    result_cast_char_octet_length:int4 result_cast_char_set_catalog result_cast_char_set_schema
    result_cast_char_set_name result_cast_collation_catalog result_cast_collation_schema
    result_cast_collation_name result_cast_numeric_precision:int4
    result_cast_numeric_precision_radix:int4 result_cast_numeric_scale:int4
    result_cast_datetime_precision:int4 result_cast_interval_type
    result_cast_interval_precision:int4 result_cast_type_udt_catalog result_cast_type_udt_schema
    result_cast_type_udt_name result_cast_scope_catalog result_cast_scope_schema
    result_cast_scope_name result_cast_maximum_cardinality:int4 result_cast_dtd_identifier
information_schema.check_constraints constraint_catalog constraint_schema constraint_name
    check_clause
information_schema.table_privileges grantor grantee table_catalog table_schema table_name
    privilege_type is_grantable with_hierarchy
information_schema.column_privileges grantor grantee table_catalog table_schema table_name
    column_name privilege_type is_grantable
information_schema.role_table_grants grantor grantee table_catalog table_schema table_name
    privilege_type is_grantable with_hierarchy
information_schema.enabled_roles role_name
information_schema.applicable_roles grantee role_name is_grantable
information_schema.domains domain_catalog domain_schema domain_name data_type
    character_maximum_length:int4 character_octet_length:int4 character_set_catalog
    character_set_schema character_set_name collation_catalog collation_schema collation_name
    numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4
    interval_type interval_precision:int4 domain_default udt_catalog udt_schema udt_name
    scope_catalog scope_schema scope_name maximum_cardinality:int4 dtd_identifier
information_schema.triggers trigger_catalog trigger_schema trigger_name event_manipulation
    event_object_catalog event_object_schema event_object_table action_order:int4 action_condition
    action_statement action_orientation action_timing action_reference_old_table
    action_reference_new_table action_reference_old_row action_reference_new_row created:timestamp
information_schema.parameters specific_catalog specific_schema specific_name ordinal_position:int4
    parameter_mode is_result as_locator parameter_name data_type character_maximum_length:int4
    character_octet_length:int4 character_set_catalog character_set_schema character_set_name
    collation_catalog collation_schema collation_name numeric_precision:int4
    numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type
    interval_precision:int4 udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name
    maximum_cardinality:int4 dtd_identifier parameter_default
"""


def system_tables() -> dict[str, pa.Schema]:
    """Return the system tables by name, those of information_schema with it before.

    >>> system_tables()["pg_namespace"].names
    ['oid', 'nspname', 'nspowner', 'nspacl']
    """
    found: dict[str, pa.Schema] = {}
    for line in _TABLES.replace("\n    ", " ").strip().splitlines():
        name, *columns = line.split()
        found[name] = pa.schema([_field(column) for column in columns])
    return found


def _field(text: str) -> pa.Field:
    name, _, kind = text.partition(":")
    if kind.endswith("[]"):
        return pa.field(name, pa.list_(_TYPES[kind[:-2]]))
    return pa.field(name, _TYPES[kind or "text"])
