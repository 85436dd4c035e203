"""Folders are replaced whole, also when the process is killed; what killed runs left goes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from discreet.data import atomic
from discreet.data.atomic import atomic_directory, atomic_file, working_folder, written_files
from discreet.errors import InputError

#: Writes a folder of twenty files that all say the same word, over and over.
_WRITER = """
import json, sys
from discreet.data.atomic import atomic_directory, written_files
target, number = sys.argv[1], 0
print("ready", flush=True)
while True:
    number += 1
    with atomic_directory(target) as stage:
        (stage / "private.key").write_text(str(number))
        for place in range(20):
            (stage / f"{place}.txt").write_text(str(number))
        (stage / f"only-{number}.txt").write_text(str(number))
        (stage / "evidence.json").write_text(json.dumps({"files": written_files(stage)}))
"""


def write(target, word):
    with atomic_directory(target) as stage:
        (stage / "a.txt").write_text(word)
        (stage / f"{word}.txt").write_text(word)
        (stage / "evidence.json").write_text(json.dumps({"files": written_files(stage)}))


def test_an_earlier_release_is_replaced_whole(tmp_path):
    write(tmp_path / "out", "old")
    write(tmp_path / "out", "new")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"a.txt", "new.txt", "evidence.json"}
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_without_an_exchange_two_renames_do(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic.ctypes, "CDLL", lambda *_: object())
    test_an_earlier_release_is_replaced_whole(tmp_path)
    # Killed between the two renames: the next run finds the old folder aside.
    (tmp_path / "out").rename(tmp_path / ".out.discreet-replaced")
    with pytest.raises(RuntimeError), atomic_directory(tmp_path / "out"):
        raise RuntimeError
    assert (tmp_path / "out" / "new.txt").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("make", ["file", "folder", "link"])
def test_what_is_not_ours_is_never_replaced(tmp_path, make):
    target = tmp_path / "out"
    if make == "file":
        target.write_text("mine")
    elif make == "link":
        (tmp_path / "else").mkdir()
        target.symlink_to(tmp_path / "else")
    else:
        target.mkdir()
        (target / "mine.txt").write_text("mine")
    with pytest.raises(InputError) as caught:
        write(target, "new")
    assert caught.value.code in ("foreign-files", "not-a-folder")
    assert caught.value.file == str(target)


def test_a_private_file_is_its_owners(tmp_path):
    with atomic_file(tmp_path / "a.json", private=True) as file:
        file.write_text("x")
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o600


def test_abandoned_folders_go_and_those_in_use_stay(tmp_path):
    left = tmp_path / "run.discreet-killed"
    left.mkdir()
    (left / "server.key").write_text("secret")
    with working_folder("run", tmp_path) as one:
        assert not left.exists()
        with working_folder("run", tmp_path) as other:
            assert one.exists()
            assert other.exists()
    assert list(tmp_path.iterdir()) == []


def kill_at_random_moments(tmp_path, times, source):
    """Kill the writer; each time the folder is whole, and the next run cleans up."""
    target, seen = tmp_path / "out", 0
    for _ in range(times):
        with subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(target)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(source.random() * 0.05)
            process.send_signal(signal.SIGKILL)
        if target.exists():
            seen += 1
            words = {file.read_text() for file in target.glob("*.txt")}
            files = {file.name for file in target.iterdir()}
            assert len(words) == 1
            assert len(files) == 23
            assert f"only-{words.pop()}.txt" in files
        if source.random() < 0.3 and target.exists():
            atomic.shutil.rmtree(target)  # also into a folder that is not there yet
    write(target, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    return seen


def test_a_release_removes_what_killed_releases_of_other_names_left(tmp_path):
    left = tmp_path / ".earlier.discreet-b3ea9jjr"
    left.mkdir()
    (left / "people.csv").write_text("a person")
    ours = [tmp_path / name for name in (".x.discreet-replaced", ".x.discreet-notes.txt", ".git")]
    for folder in ours:
        folder.mkdir()
    with atomic.working_folder(".other", tmp_path) as alive:
        write(tmp_path / "out", "new")
        assert alive.exists()
    assert not left.exists()
    assert all(folder.exists() for folder in ours)


def test_a_killed_run_leaves_the_old_folder_or_the_new_one(tmp_path):
    assert kill_at_random_moments(tmp_path, 8, random.Random(1)) > 0


@pytest.mark.slow
def test_a_hundred_kills(tmp_path):
    assert kill_at_random_moments(tmp_path, 100, random.Random(2)) > 50


def test_terminated_commands_clean_up(tmp_path):
    code = (
        "import sys, time\n"
        "from discreet.app.cli import main as cli\n"
        "from discreet.data.atomic import atomic_directory\n"
        "def build(words):\n"
        "    def run():\n"
        "        with atomic_directory(sys.argv[1]) as stage:\n"
        "            (stage / 'private.key').write_text('x')\n"
        "            print('ready', flush=True)\n"
        "            time.sleep(60)\n"
        "    return run\n"
        "cli.build = build\n"
        "cli.main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        env=dict(os.environ),
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert process.wait(60) == 143
    assert list(tmp_path.iterdir()) == []


def test_a_run_does_not_wait_for_a_folder_that_it_holds_itself(tmp_path, monkeypatch):
    # Each release of a policy is written inside the folder that the policy's run holds.
    monkeypatch.setattr(atomic.time, "sleep", lambda _: pytest.fail("waits for its own lock"))
    with atomic_directory(tmp_path / "out") as stage:
        with atomic_directory(stage / "one") as inner, working_folder(".two", stage) as beside:
            assert {inner.parent, beside.parent} == {stage}
            (inner / "a.txt").write_text("a")
        (stage / "record.json").write_text(json.dumps({"files": ["one"]}))
    assert (tmp_path / "out" / "one" / "a.txt").read_text() == "a"


def test_a_run_still_waits_for_a_folder_that_another_one_holds(tmp_path, monkeypatch):
    waited = []
    held = atomic._hold(tmp_path)

    def let_go(seconds):
        waited.append(seconds)
        os.close(held)

    monkeypatch.setattr(atomic.time, "sleep", let_go)
    with working_folder("mine", tmp_path):
        pass
    assert len(waited) == 1
