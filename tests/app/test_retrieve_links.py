"""Links and names in the folder of a policy for private retrieval lead nowhere else."""

import pytest

from discreet.app.policy.access import permitted_policy
from discreet.errors import InputError
from discreet.protocols.retrieval.table import RetrievalTable
from discreet.protocols.services.retrieval_table import RetrievalTableService, serve_tables
from discreet.protocols.transport import Identity
from tests.app.test_retrieve import call, policy
from tests.protocols.retrieval.served import PUBLISHER, people

__all__ = ["policy"]


@pytest.fixture
def decoy(tmp_path_factory):
    """A folder outside the policy's, with a file that nobody may touch."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "target").write_text("mine")
    return folder


def untouched(decoy):
    held = {one.name: one.read_text() for one in decoy.iterdir()}
    return held == {"target": "mine"}


@pytest.mark.parametrize(
    "link",
    [
        "published/people/publisher.pub",
        "published/people/seen-version.txt",
        "published/people",
        "published/people/v1",
        "certificates/a.key",
        "certificates/b.crt",
    ],
)
def test_a_link_below_a_permitted_folder_is_followed_before_it_is_judged(policy, decoy, link):
    place = policy.parent / link
    place.parent.mkdir(parents=True)
    place.symlink_to(decoy / "target" if place.suffix else decoy)
    for words in (("build", policy), ("serve", policy, "--server", "a")):
        done = call(*words)
        assert isinstance(done.exception, InputError)
        assert done.exception.code == "not-allowed"
    assert untouched(decoy)
    loaded, _ = permitted_policy(policy, allow=[decoy])  # who trusts it says so
    assert loaded.retrieval["people"].key == "id"


def test_writers_replace_links(tmp_path, decoy):
    folder = tmp_path / "people"
    folder.mkdir()
    (folder / "publisher.pub").symlink_to(decoy / "target")
    RetrievalTable.build(
        people(5), key="id", folder=folder, publisher=PUBLISHER, publishable=True, columns=["name"]
    )
    assert not (folder / "publisher.pub").is_symlink()
    (tmp_path / "a.key").symlink_to(decoy / "new.key")
    with pytest.raises(InputError, match="exists"):
        Identity.new(tmp_path, "a")
    assert untouched(decoy)


@pytest.mark.parametrize("name", ["../../outside/evil", "a/b", "..", ".a", "con"])
def test_servers_are_called_what_files_can_be(policy, name):
    policy.write_text(policy.read_text().replace("{a: ", f'{{"{name}": '))
    for words in (("build", policy), ("serve", policy, "--server", name)):
        assert "cannot be a folder's name" in str(
            done := call(*words).exception
        ) or "device" in str(done)
    with pytest.raises(InputError):
        serve_tables(
            {"people": RetrievalTableService(key="id", servers={name: "localhost:7001"})}, name
        )
    assert sorted(one.name for one in policy.parent.iterdir()) == ["people.csv", "policy.yaml"]


@pytest.mark.parametrize("content", ["0" * 64, "\0" * 32, "id,name\n1,Ana\n2,Bo and others\n"])
def test_only_a_key_file_signs(policy, content):
    (policy.parent / "some.file").write_text(content)
    policy.write_text(policy.read_text() + "    publisher: some.file\n")
    assert call("build", policy).exception.code == "not-a-key"
    assert not list(policy.parent.glob("published/*/v*"))


@pytest.mark.parametrize(
    "option", ["publisher: published/people/publisher.key", "certificates: published"]
)
def test_secrets_are_kept_out_of_what_is_published(policy, option):
    policy.write_text(policy.read_text() + f"    {option}\n")
    assert call("build", policy).exception.code == "key-published"
    assert not (policy.parent / "published").exists()


@pytest.mark.parametrize("said", ["false", "no", 0, None])
def test_only_a_yes_vouches(tmp_path, said):
    with pytest.raises(InputError, match="publishable must be True or False"):
        RetrievalTable.build(
            people(5), key="id", folder=tmp_path / "t", publisher=PUBLISHER, publishable=said
        )


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 65},
        {"width": 10**12},
        {"rate": float("inf")},
        {"expires": float("inf")},
        {"servers": {"a": "localhost:99999"}},
        {"servers": {"a": "localhost"}},
        {"servers": {f"s{n}": f"localhost:700{n}" for n in range(9)}},
    ],
)
def test_check_refuses_what_cannot_be_done(wrong):
    with pytest.raises(InputError):
        RetrievalTableService(key="id", **wrong)
