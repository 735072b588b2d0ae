"""Tests and fixtures that leave, and remove, the directory they stand in."""

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def moved(tmp_path_factory):
    place = tmp_path_factory.mktemp("gone")
    os.chdir(place)
    os.rmdir(place)
    yield
    os.chdir("/")


@pytest.fixture(scope="session", autouse=True)
def session_moved():
    os.chdir("/")


def test_it_is_gone():
    with pytest.raises(FileNotFoundError):
        os.getcwd()


def test_removes_its_own(tmp_path):
    os.chdir(tmp_path)
    shutil.rmtree(tmp_path)


def test_has_one_of_its_own_again(tmp_path):
    os.chdir(tmp_path)
    Path("x").write_text("1")
    assert (tmp_path / "x").exists()


def test_removes_its_home():
    home = os.environ["HOME"]
    assert "stricttest-env" in home, "the floor's, and no other"
    shutil.rmtree(home)


def test_goes_on_without():
    pass
