"""Byte code beside the source, in a zip that is imported from."""

import subprocess
import sys
from pathlib import Path

import pytest

from headwork.marking.graders.files import compiled, zipped


@pytest.mark.parametrize(("magic", "taken"), [(b"", "byte code"), (b"\0\0\0\0", "source")], ids=["ours", "another"])
def test_byte_code_is_for_its_own_version_of_python(tmp_path: Path, magic: bytes, taken: str) -> None:
    """Ours is taken as it is, without a look at the source; that of another version is passed over."""
    files = dict(compiled({"words.py": b"taken = 'byte code'\n"}))
    files["words.py"] = b"taken = 'source'\n"
    files["words.pyc"] = magic + files["words.pyc"][len(magic) :]
    (tmp_path / "library.zip").write_bytes(zipped(files))
    code = "import sys; sys.path.insert(0, 'library.zip'); import words; print(words.taken)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == taken
