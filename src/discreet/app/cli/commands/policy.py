"""`discreet schema`, `discreet check` and `discreet release`: working from a policy file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.app.cli import console
from discreet.app.cli.allowing import AllowOption, PasswordOption, password_in

PolicyArgument = Annotated[Path, typer.Argument(help="The policy file (YAML).")]
FolderOption = Annotated[
    Path | None,
    typer.Option(help="Where relative paths start, if not in the policy's own folder."),
]


def add(app: typer.Typer) -> None:
    """Register the commands."""

    @app.command()
    def schema(
        output: Annotated[
            Path | None, typer.Option("--output", "-o", help="Write it to this file.")
        ] = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Write the JSON Schema of the policy file, for completion and checks in an editor."""
        import json

        from discreet.app.policy.json_schema import policy_schema
        from discreet.data.atomic import atomic_file

        text = json.dumps(policy_schema(), indent=2, ensure_ascii=False) + "\n"
        if output is None:
            print(text, end="")
            return
        with atomic_file(output) as file:
            file.write_text(text, encoding="utf-8")
        console.done(f"wrote {output}", as_json=as_json, written=output)

    @app.command()
    def check(
        policy: PolicyArgument,
        folder: FolderOption = None,
        allow: AllowOption = None,
        password_from: PasswordOption = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Check a policy file against its data; releases nothing.

        A policy may use files of its own folder; everything else must be allowed.
        """
        from discreet.app.policy.run import check_policy

        found = check_policy(
            policy, folder=folder, allow=allow or (), password=password_in(password_from)
        )
        for warning in found.cautions:
            console.note(f"caution: {warning}")
        console.show(found, as_json=as_json)

    @app.command()
    def release(
        policy: PolicyArgument,
        output: Annotated[
            Path, typer.Option("--output", "-o", help="Folder of the releases.")
        ] = Path("out"),
        only: Annotated[
            list[str] | None, typer.Option(help="Run only the release of this name; repeatable.")
        ] = None,
        folder: FolderOption = None,
        allow: AllowOption = None,
        password_from: PasswordOption = None,
        fingerprint_key: Annotated[
            Path | None,
            typer.Option(
                help="Your key file for the fingerprints in the record, so that records can be "
                "compared; drawn for this run if left out."
            ),
        ] = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Run the releases of a policy file; the folder is the record of what was done.

        To do it again: [bold]discreet release out/policy.yaml --folder FOLDER[/bold], where FOLDER
        is the one that out/record.json names; it also has keyed fingerprints of all files read.
        """
        from discreet.app.policy.run import run_policy
        from discreet.data.keys import read_key_file

        key = None if fingerprint_key is None else read_key_file(fingerprint_key)
        with console.progress() as progress:
            record = run_policy(
                policy,
                output,
                only=tuple(only or ()),
                folder=folder,
                allow=allow or (),
                password=password_in(password_from),
                fingerprint_key=key,
                progress=progress,
            )
        for warning in record.cautions:
            console.note(f"caution: {warning}")
        console.show(record, as_json=as_json)
