"""Files that hold results: links, modes, and what stays when something fails."""

import os
import stat

import numpy as np
import pytest

from sparsestep import Moments, SparseStep, save_model, write_report
from sparsestep.cli.outputs import check_outputs
from sparsestep.errors import InputError

X = np.random.default_rng(0).normal(size=(30, 3))
MODEL = SparseStep().fit(X, X[:, 0])
DENSE, THIN = Moments.from_data(X, X[:, 0]), Moments.from_data(X[:2], X[:2, 0])
WRITERS = {
    "model": lambda path: save_model(MODEL, path),
    "report": lambda path: write_report(MODEL, path),
    "moments": DENSE.save,
    "rows": THIN.save,
}


@pytest.fixture(autouse=True)
def usual_mask():
    old = os.umask(0o022)
    yield
    os.umask(old)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


every_writer = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)


@every_writer
@pytest.mark.parametrize("kept", [0o600, 0o640, 0o664, 0o444])
def test_a_file_keeps_its_mode(tmp_path, write, kept):
    path = tmp_path / "result"
    write(path)
    assert mode(path) == (0o600 if write == THIN.save else 0o644)
    path.write_text("old")
    path.chmod(kept)
    write(path)
    assert mode(path) == kept and path.read_bytes() != b"old"
    assert os.listdir(tmp_path) == ["result"]


@every_writer
def test_a_write_that_fails_leaves_the_old_file(tmp_path, write, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    (tmp_path / "result").write_text("old")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "result")
    assert (tmp_path / "result").read_text() == "old"
    assert os.listdir(tmp_path) == ["result"]


@every_writer
@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed(tmp_path, write, there):
    (tmp_path / "far").mkdir()
    file, link = tmp_path / "far" / "file", tmp_path / "link"
    if there:
        file.write_text("old")
    link.symlink_to("far/file")
    write(link)
    assert link.is_symlink() and not file.is_symlink() and file.stat().st_size > 3
    assert sorted(os.listdir(tmp_path)) == ["far", "link"]
    assert os.listdir(tmp_path / "far") == ["file"]


def test_a_link_to_nowhere_is_refused_before_anything_is_read(tmp_path):
    link = tmp_path / "m.npz"
    link.symlink_to("none/m.npz")
    with pytest.raises(FileNotFoundError, match=r"none for the moments"):
        DENSE.save(link)
    with pytest.raises(InputError, match=r"none for the moments"):
        check_outputs([("moments", link)])
    other = tmp_path / "a.npz"
    (tmp_path / "b.npz").symlink_to(other)
    with pytest.raises(InputError, match="two results"):
        check_outputs([("moments", other), ("moments", tmp_path / "b.npz")])
