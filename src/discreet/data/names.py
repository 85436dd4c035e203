"""What a column's name tells: words for people, places, money and illness in several languages."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["is_household", "meaning", "number_of_somebody", "tells_of_somebody", "words"]

# Stems, compared with the beginning of each word of a name (English, Spanish, Catalan, French,
# German, Dutch, Italian, Portuguese, the Nordic languages). A stem in capitals is a whole word.
_AGED = (
    "AGE AGES alter edad edat eta idade leeftijd alder birth born geburt nacim naissance nascita "
    "nascim fodt DOB geboorte"
)
_SEXED = "sex SEXE SEXO gender geschlecht genre genero kjonn kon geslacht"
_STEMS: dict[str, str] = {
    "weight": "weight wgt wt fnlwgt afnlwgt WEIGHTS gewicht peso pesos pondera poids vekt vikt vagt",
    "identifier": (
        "ID IDS uuid guid identif ssn DNI NIE NIF cpr bsn nino personnummer pnr fodselsn passport "
        "pasaport reisepass passeport NAME NAMES fullname surname lastname firstname forename "
        "vorname nachname familienname nombre apellido cognom NOM prenom nome cognome naam email "
        "mail correo courriel phone telefon telephone telefono handy mobil movil fax iban "
        "kontonummer account konto address adresse direccion indirizzo strasse street calle "
        "license plate matricula kennzeichen rekordnr recordno casenr hid pid HHID HHNR HHNO"
    ),
    "quasi": (
        f"{_AGED} {_SEXED} "
        "zip zipcode postal postcode postleit PLZ CAP region provin munici gemeinde kommune county "
        "kreis comarca depart district bezirk city town ORT stadt ciudad ciutat ville citta cidade "
        "place wohnort domicil residen land country pais pays paese nation nacional staat STATE "
        "nuts geo urb rural RACE raza ethni etnia origin migra citizen ciudadan marital civil "
        "familienstand relationship relat household haushalt hogar menage occupat JOB beruf profes "
        "oficio metier yrke stilling workclass employ education bildung educac estudi formation "
        "utdanning schul school degree sector sektor industr branche NACE WZ WZ08 WZ2008 NAF CNAE ATECO SBI NOGA onace sic isic activity activid "
        "ACT holding SIZE groesse tamano taille language sprache idioma roof walls nace date datum fecha"
    ),
    "confidential": (
        "salar wage pay income incom earn gehalt lohn einkommen renta ingres sueldo salaire revenu "
        "stipendio reddito inntekt lonn inkomen tax steuer impuesto impot debt schuld deuda dette "
        "loan kredit credit expend ausgabe gasto depense saving spar ahorro capital vermogen wealth "
        "turnover umsatz factura chiffre profit gewinn benefici loss verlust balance saldo price "
        "assets sales labor costs funds funding treasury outcome depreciation agi emcontrb fedtax "
        "statetax taxinc diag hauptdiagnos nebendiagnos icd10 DX DRG disease illness krankheit enfermed malad malatti sykdom icd hiv "
        "cancer drug medic treatment therap behandlung tratamiento health gesund salud sante blood "
        "bmi disab behinder religi konfession polit vote partei union crime convict strafe grade "
        "score note rating"
    ),
    "called": (
        "NAME NAMES fullname surname lastname firstname forename vorname nachname familienname "
        "nombre apellido cognom NOM prenom nome cognome naam email mail correo courriel phone "
        "telefon telephone telefono handy mobil movil fax address adresse direccion indirizzo"
    ),
    "aged": _AGED,
    "sexed": _SEXED,
    "postcode": "zip zipcode postal postcode postleit PLZ CAP",
    "activity": (
        "NACE WZ WZ08 WZ2008 NAF CNAE ATECO SBI NOGA onace isic sic branche activity activid ACT"
    ),
    "place": "LAT LON LNG LONG latitud longitud breitengrad laengengrad latitude longitude coordina UTM "
    "easting northing rechtswert hochwert ostwert nordwert",
    "ordinal": "level stufe nivel niveau grade rank rang stage class klasse clase rating size score",
    "person": "person patient respond individual client customer kunde employee pupil student member",
    "staff": (
        "doctor physician arzt aerzt hausarzt medico medecin nurse surgeon chirurg therapist teacher "
        "lehrer judge richter lawyer anwalt abogado author manager supervisor officer caseworker "
        "sachbearbeit contact ansprechpartner referrer consultant examiner interviewer reviewer agent "
        "operator midwife hebamme practitioner GP attending signed signatory responsable "
        "behandelnde einweiser einweisend zuweiser zuweisend uberweiser ueberweiser operateur treating "
        "referring"
    ),
    "household": (
        "HH HHID HHNR HHNO HID household haushalt hogar menage huishoud hushall husstand famil "
        "famiglia agregado nucleo dwelling apartment wohnung vivienda logement abitazione"
    ),
    "group": "holding enterprise group konzern company firm unternehmen empresa entreprise owner HHID HHNR HHNO",
}
_KNOWN = {kind: stems.split() for kind, stems in _STEMS.items()}


def words(name: str) -> list[str]:
    """Return the words of a column's name, lower case and without accents.

    >>> words("DateOfBirth"), words("código_postal")
    (['date', 'of', 'birth'], ['codigo', 'postal'])
    """
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain)
    return [word.lower() for word in re.split(r"[^A-Za-z0-9]+", spaced) if word]


def meaning(name: str, kind: str) -> str | None:
    """Return the word of a name that speaks for a kind (`identifier`, `quasi`, …), if one does.

    >>> meaning("Familienstand", "quasi"), meaning("person_id", "identifier"), meaning("x", "quasi")
    ('familienstand', 'id', None)
    """
    for word in words(name):
        for stem in _KNOWN[kind]:
            if word == stem.lower() or (
                not stem.isupper() and len(stem) > 3 and word.startswith(stem)
            ):
                return word
    return None


#: Words of a name that number somebody, whatever else it says: `company_tax_nr`.
_NUMBERED = frozenset({"nr", "no", "num", "number", "nummer", "numero", "key"})
#: Words of a name that sort people, and do not name them: `customer_type`.
_SORTS = frozenset(
    {"type", "typ", "tipo", "art", "status", "segment", "category", "kategorie", "categoria"}
)


#: Words of a name that say something of a household, and not which one it is.
_ABOUT_HOMES = frozenset(
    {"size", "members", "persons", "people", "children", "composition", "role", "head", "rooms"}
)


def is_household(name: str) -> bool:
    """Whether a column's name says that its values are households.

    >>> [is_household(name) for name in ("hh_nr", "Haushalt", "household_size", "household_income")]
    [True, True, False, False]
    """
    rest = [word for word in words(name) if not meaning(word, "household")]
    return (
        len(rest) < len(words(name))
        and not _SORTS.union(_ABOUT_HOMES).intersection(rest)
        and not any(meaning(word, "confidential") or meaning(word, "aged") for word in rest)
    )


def number_of_somebody(name: str) -> str | None:
    """Return the word for a person in a name that says it numbers persons.

    >>> [
    ...     number_of_somebody(name)
    ...     for name in ("Patient-Nr", "customer no", "patient_age", "patient")
    ... ]
    ['patient', 'customer', None, None]
    """
    return meaning(name, "person") if _NUMBERED.intersection(words(name)) else None


def tells_of_somebody(name: str) -> bool:
    """Whether a name says what is told of a person or firm, so its values are not theirs alone.

    >>> [tells_of_somebody(name) for name in ("patient_age", "company_postcode", "Unternehmen PLZ")]
    [True, True, True]
    >>> [tells_of_somebody(name) for name in ("patient", "household_id", "company_tax_nr", "age")]
    [False, False, False, False]
    """
    said = words(name)
    who = [word for word in said if meaning(word, "person") or meaning(word, "group")]
    rest = [word for word in said if word not in who]
    if not who or meaning(name, "identifier") or _NUMBERED.intersection(rest):
        return False
    kinds = ("quasi", "confidential", "activity", "postcode", "ordinal")
    return bool(_SORTS.intersection(rest)) or any(
        meaning(word, kind) for word in rest for kind in kinds
    )
