"""The container's files say what the program understands; images cannot be built in tests."""

from pathlib import Path

import typer.main
import yaml

from discreet.app.cli.main import build
from discreet.app.policy.access import permitted_policy

FOLDER = Path(__file__).resolve().parents[2] / "container"


def test_the_policy_is_allowed_what_the_command_allows():
    service = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]["discreet"]
    name, _, *rest = service["command"]
    said = dict(zip(rest[::2], rest[1::2], strict=True))
    serve = typer.main.get_command(build()).commands[name]
    assert said.keys() <= {option for item in serve.params for option in item.opts}
    assert said["--password-from"] in service["environment"]
    policy, _ = permitted_policy(
        FOLDER / "policy.yaml", allow=[said["--allow"]], password="a password"
    )
    assert set(policy.gateways) == {"people"}
    ports = {int(port.rpartition(":")[2]) for port in service["ports"]}
    assert ports == {policy.server.port, policy.server.http_port}
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_the_image_runs_as_nobody_special():
    lines = (FOLDER / "Containerfile").read_text().splitlines()
    assert "USER 10001" in lines
    assert lines.index("USER 10001") < lines.index('ENTRYPOINT ["discreet"]')
