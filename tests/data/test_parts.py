"""Folders and archives stand for the files in them, and for nothing outside of them."""

import gzip
import zipfile

import pytest

from discreet.data import parts
from discreet.data.dataset import read
from discreet.errors import InputError


def code_of(path, **options):
    with pytest.raises(InputError) as caught:
        read(path, **options)
    return caught.value.code


def test_a_link_that_leaves_the_folder_is_refused(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    folder = tmp_path / "open"
    folder.mkdir()
    (folder / "1.csv").write_text("a,b\n1,2\n")
    assert len(read(folder)) == 1
    (folder / "2.csv").symlink_to(secret)
    assert code_of(folder) == "not-allowed"
    assert code_of(folder / "*.csv") == "not-allowed"


def test_an_archive_cannot_fill_the_disk(tmp_path):
    bomb = tmp_path / "a.csv.gz"
    bomb.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 100_000))
    with pytest.raises(InputError) as refused, parts.plain_files([bomb], always=1000):
        pass
    assert refused.value.code == "too-large"


def test_names_in_an_archive_do_not_become_paths(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../../outside.csv", "a,b\n1,2\n")
    assert len(read(tmp_path / "a.zip")) == 1
    assert not (tmp_path.parent / "outside.csv").exists()


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.bz2", "a.csv.xz", "a.zip"])
def test_damaged_archives_are_refused(name, tmp_path):
    (tmp_path / name).write_bytes(b"no archive at all")
    assert code_of(tmp_path / name) == "bad-file"


def test_files_with_different_columns_are_refused(tmp_path):
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("a,c\n1,2\n")
    assert code_of(tmp_path) == "different-columns"


def test_an_archive_of_no_records_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("readme.md", "x")
    assert code_of(tmp_path / "a.zip") == "no-file"
