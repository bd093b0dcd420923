"""The file format: a zip of a manifest, one JSON text and plain arrays, whose sizes are checked before reading."""

import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from ..exceptions import ModelFileError
from ..io import AtomicFile
from .types import shortened

FORMAT = "kproba-model"
#: Another major version is an error, a newer minor version a warning.
VERSION = (1, 0)
#: The kproba version that reads each major version.
READERS = {1: "0.1"}
MANIFEST, DIGEST, MODEL = "manifest.json", "manifest.sha256", "model.json"
#: Maximum number of members; with more, the zip directory alone would take a lot of memory.
MOST_MEMBERS = 65_000
#: Maximum bytes of the zip directory per member: its fixed part and a name.
DIRECTORY_BYTES = 200
#: Maximum compression ratio of deflated members; zip bombs of zeros reach a thousand.
MOST_RATIO = 200
#: Maximum bytes and values of model.json; every value takes up to a few hundred bytes of memory.
JSON_BYTES, JSON_VALUES, BYTES_A_VALUE = 64 << 20, 4_000_000, 64
#: Maximum JSON values per byte of the file, deflated or not, in addition to those allowed in a small file.
VALUES_A_BYTE, FEW_VALUES = 8, 10_000
#: Maximum digits of an integer: ``save`` writes integers of up to 1,024 bits.
MOST_DIGITS = 310
BLOCK = 1 << 20
#: The zip format requires a date; with a fixed one, equal models give equal files.
DATE = (1980, 1, 1, 0, 0, 0)
MOST_DIMENSIONS = 8

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    r"\{'descr': '([<>|](?:b1|i[1248]|u[1248]|f[248]|[SU][1-9]\d{0,8}|[mM]8\[[A-Za-z0-9]{1,6}\]))', "
    r"'fortran_order': (True|False), 'shape': \(((?:\d{1,15}(?:, ?|,?(?=\))))*)\), \} *\n"
)


def array_name(number: int) -> str:
    return f"arrays/{number}.npy"


# ---------------------------------------------------------------- writing


def write(path: str | os.PathLike, model: dict[str, Any], arrays: Sequence[np.ndarray]) -> None:
    """Write all members; the file only appears at ``path`` once it is complete, and not at all after an error."""
    text = json.dumps(model, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
    _check_json_size(text, JSON_VALUES)
    if len(arrays) > MOST_MEMBERS - 3:
        raise ModelFileError(f"the model has {len(arrays)} arrays; a model file holds at most {MOST_MEMBERS - 3}.")
    with AtomicFile(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        entries = {MODEL: _write_member(archive, MODEL, [text])}
        for number, array in enumerate(arrays):
            entries[array_name(number)] = _write_member(archive, array_name(number), _npy_parts(array))
        manifest = json.dumps({"format": FORMAT, "version": VERSION, "members": entries}, indent=0).encode()
        _write_member(archive, MANIFEST, [manifest])
        _write_member(archive, DIGEST, [hashlib.sha256(manifest).hexdigest().encode()])


def _write_member(archive: zipfile.ZipFile, name: str, parts) -> dict[str, Any]:
    info, digest, size = zipfile.ZipInfo(name, DATE), hashlib.sha256(), 0
    info.create_system, info.external_attr = 3, (stat.S_IFREG | 0o644) << 16  # the same bytes on every system
    with archive.open(info, "w", force_zip64=sum(map(len, parts)) >= zipfile.ZIP64_LIMIT) as member:
        for part in parts:
            member.write(part)
            digest.update(part)
            size += len(part)
    return {"sha256": digest.hexdigest(), "size": size}


def _npy_parts(array: np.ndarray) -> list:
    """The header and the data of a .npy file; the data is not copied if it is contiguous."""
    head = io.BytesIO()
    fields = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(head, fields)
    flat = np.ascontiguousarray(array.reshape(-1, order="F" if fields["fortran_order"] else "C"))
    return [head.getvalue(), flat.view(np.uint8).data if flat.size else b""]


# ---------------------------------------------------------------- reading


class Archive:
    """The members of an open model file, with checked names and sizes."""

    def __init__(self, file: BinaryIO, max_bytes: int):
        self.size, self.max_bytes = _checked_size(file), max_bytes
        self.n_bytes_read = 0
        _check_directory_size(file, self.size)
        self._zip = zipfile.ZipFile(file)
        self._infos = {info.filename: info for info in self._zip.infolist()}
        self._check_infos()
        self.version, self._members = self._read_manifest()
        self.n_arrays = len(self._members) - 1
        self._check_members()

    def _check_infos(self) -> None:
        infos = self._zip.infolist()
        if len(self._infos) != len(infos):
            raise ModelFileError("two members of the zip file have the same name.")
        for info in infos:
            _check_info(info)
        if sum(info.compress_size for info in infos) > self.size:
            raise ModelFileError("its members overlap: together they are larger than the file.")
        self.n_bytes = sum(info.file_size for info in infos)
        if self.n_bytes > self.max_bytes:
            raise ModelFileError(
                f"it takes {self.n_bytes:,} bytes unpacked, but max_bytes={self.max_bytes:,}; increase max_bytes if "
                "you trust it."
            )

    def _read_manifest(self) -> tuple[tuple[int, int], dict[str, dict[str, Any]]]:
        for name in (MANIFEST, DIGEST, MODEL):
            if name not in self._infos:
                raise ModelFileError(f"it is not a kproba model file: it has no member {name}.")
        text = self._read_whole(MANIFEST, 1000 + 200 * len(self._infos))
        if self._read_whole(DIGEST, 64) != hashlib.sha256(text).hexdigest().encode():
            raise ModelFileError("its manifest was changed or damaged: the checksum does not match.")
        manifest = parsed(text, self._most_values)
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ModelFileError(f"it is not a kproba model file: the format in its manifest is not {FORMAT!r}.")
        return _checked_version(manifest.get("version")), _checked_entries(manifest.get("members"))

    def _check_members(self) -> None:
        """Check that the zip file has exactly the members of the manifest, with the same sizes."""
        expected = {MODEL, *(array_name(number) for number in range(self.n_arrays))}
        if set(self._members) != expected:
            raise ModelFileError(f"its manifest must name {MODEL} and arrays numbered from 0, and nothing else.")
        extra = set(self._infos) ^ {*expected, MANIFEST, DIGEST}
        if extra:
            raise ModelFileError(
                f"its member {shortened(min(extra))} is in the manifest or in the zip, but not in both."
            )
        for name, entry in self._members.items():
            if entry["size"] != self._infos[name].file_size:
                raise ModelFileError(
                    f"{name} has {self._infos[name].file_size} bytes; its manifest says {entry['size']}."
                )

    def model(self) -> Any:
        """The contents of model.json."""
        text = self._read_whole(MODEL, JSON_BYTES)
        if hashlib.sha256(text).hexdigest() != self._members[MODEL]["sha256"]:
            raise _damaged(MODEL)
        return parsed(text, self._most_values)

    @property
    def _most_values(self) -> int:
        """Maximum number of JSON values, by the size of the file: brackets alone compress to almost nothing."""
        return min(JSON_VALUES, self.max_bytes // BYTES_A_VALUE, FEW_VALUES + VALUES_A_BYTE * self.size)

    def array(self, number: int) -> np.ndarray:
        """Read one array. Memory is only allocated if shape and type match the size of the member."""
        name = array_name(number)
        digest, size = hashlib.sha256(), self._infos[name].file_size
        with self._zip.open(self._infos[name]) as member:
            head = _exactly(member, 10, name)
            length = struct.unpack("<H", head[8:])[0]
            header = _exactly(member, length, name)
            dtype, shape, fortran = _parsed_header(name, head, header)
            count = math.prod(shape)
            if count * dtype.itemsize != size - 10 - length:
                raise ModelFileError(f"{name} has shape {shape} and type {dtype}, which do not match its {size} bytes.")
            flat = np.empty(count, dtype)
            _fill(member, flat.view(np.uint8) if flat.size else flat, name, digest, (head, header))
        if digest.hexdigest() != self._members[name]["sha256"]:
            raise _damaged(name)
        _check_values(name, flat)
        self.n_bytes_read += flat.nbytes
        return flat.reshape(shape, order="F" if fortran else "C")

    def _read_whole(self, name: str, most: int) -> bytes:
        size = self._infos[name].file_size
        if size > most:
            raise ModelFileError(f"{name} has {size:,} bytes; the maximum is {most:,}.")
        with self._zip.open(self._infos[name]) as member:
            return _exactly(member, size, name)


def _checked_size(file: BinaryIO) -> int:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError("it is not a regular file.")
    return status.st_size


def _check_directory_size(file: BinaryIO, size: int) -> None:
    """Raise an error if the zip directory alone would fill the memory, before zipfile reads it."""
    file.seek(max(0, size - 98))
    tail = file.read(98)
    if len(tail) < 22 or tail[-22:-18] != b"PK\x05\x06":
        raise ModelFileError("it is not a kproba model file, or it is truncated: no zip directory was found.")
    members, directory_bytes = struct.unpack("<HI", tail[-12:-6])
    if tail[-42:-38] == b"PK\x06\x07":  # zip files beyond 4 GiB have these numbers in another record
        if tail[:4] != b"PK\x06\x06":
            raise ModelFileError("the zip directory is damaged.")
        members, directory_bytes = struct.unpack("<QQ", tail[32:48])
    if members > MOST_MEMBERS or directory_bytes > DIRECTORY_BYTES * (members + 1):
        raise ModelFileError(f"its zip directory has {members} members and {directory_bytes} bytes, which is too much.")
    file.seek(0)


def _check_info(info: zipfile.ZipInfo) -> None:
    name, kind = shortened(info.filename), stat.S_IFMT(info.external_attr >> 16)
    if info.flag_bits & 0x61:  # encrypted, patched, strongly encrypted
        raise ModelFileError(f"its member {name} is encrypted.")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ModelFileError(f"its member {name} is compressed with a method other than deflate.")
    if kind not in (0, stat.S_IFREG):
        raise ModelFileError(f"its member {name} is a link or another special file.")
    if info.compress_type == zipfile.ZIP_STORED and info.file_size != info.compress_size:
        raise ModelFileError(f"its member {name} is stored, but its two sizes differ.")
    if info.file_size > MOST_RATIO * max(info.compress_size, 1):
        raise ModelFileError(f"its member {name} unpacks to over {MOST_RATIO} times its size: a zip bomb?")


def _checked_version(version: Any) -> tuple[int, int]:
    if not (isinstance(version, list) and len(version) == 2 and all(type(part) is int for part in version)):
        raise ModelFileError(f"its format version {shortened(version)} is not a pair of integers.")
    major, minor = version
    if major != VERSION[0]:
        use = f"kproba {READERS[major]}" if major in READERS else "a newer kproba"
        raise ModelFileError(f"its format version is {major}.{minor}, but this kproba reads {VERSION[0]}; use {use}.")
    return major, minor


def _checked_entries(members: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(members, dict) or not members:
        raise ModelFileError("its manifest lists no members.")
    for name, entry in members.items():
        good = isinstance(entry, dict) and set(entry) == {"sha256", "size"}
        if not good or type(entry["size"]) is not int or not isinstance(entry["sha256"], str):
            raise ModelFileError(f"the manifest has no valid checksum and size for {shortened(name)}.")
    return members


def parsed(text: bytes, most_values: int) -> Any:
    """Parse JSON after checking its size; deep nesting and duplicate names are errors."""
    _check_json_size(text, most_values)
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_no_constant, parse_int=_integer)
    except RecursionError:
        raise ModelFileError("its JSON is nested too deeply.") from None
    except ValueError as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"its JSON cannot be read: {str(error)[:200]}.") from None


def _check_json_size(text: bytes, most_values: int) -> None:
    n_values = sum(map(text.count, (b",", b"[", b"{", b":")))
    if len(text) > JSON_BYTES or n_values > most_values:
        raise ModelFileError(
            f"{MODEL} has {len(text):,} bytes and about {n_values:,} values; the maximum is {JSON_BYTES:,} and "
            f"{most_values:,}. Store numbers and text in arrays."
        )


def _integer(digits: str) -> int:
    """Parse an integer of limited length, since the time grows with the square of the number of digits."""
    if len(digits) > MOST_DIGITS:
        raise ModelFileError(f"its JSON has an integer of {len(digits):,} digits; the maximum is {MOST_DIGITS}.")
    return int(digits)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ModelFileError("its JSON has a duplicate name in an object.")
    return found


def _no_constant(name: str):
    raise ModelFileError(f"its JSON has {name}, which is not valid JSON.")


def _parsed_header(name: str, head: bytes, header: bytes) -> tuple[np.dtype, tuple[int, ...], bool]:
    """Type and shape of a .npy file, parsed with a regular expression: NumPy's reader would compile the text."""
    match = _HEADER.fullmatch(header.decode("latin1")) if head[:8] == _MAGIC else None
    if match is None:
        raise ModelFileError(f"{name} is not an array of plain numbers, booleans, dates or text.")
    dtype = np.dtype(match[1])
    shape = tuple(int(part) for part in match[3].split(",") if part.strip())
    if len(shape) > MOST_DIMENSIONS or dtype.itemsize * math.prod(max(1, n) for n in shape) > 1 << 62:
        raise ModelFileError(f"{name} has the invalid shape {str(shape)[:80]}.")
    return dtype, shape, match[2] == "True"


def _fill(member, flat: np.ndarray, name: str, digest, before) -> None:
    for part in before:
        digest.update(part)
    view = flat.data if flat.size else memoryview(b"")
    done = 0
    while done < len(view):
        n = member.readinto(view[done : done + BLOCK])
        if not n:
            raise ModelFileError(f"{name} ends before all its numbers are read.")
        digest.update(view[done : done + n])
        done += n
    if member.read(1):  # also makes zipfile verify its own checksum
        raise ModelFileError(f"{name} continues after its numbers.")


def _check_values(name: str, flat: np.ndarray) -> None:
    """Check for bytes that are invalid for their type: NumPy relies on booleans being 0 or 1."""
    if flat.dtype.kind == "b" and flat.size and flat.view(np.uint8).max() > 1:
        raise ModelFileError(f"{name} has booleans that are neither 0 nor 1.")
    if flat.dtype.kind == "U" and flat.size:
        codes = flat.view(np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder))
        if codes.max() > 0x10FFFF:
            raise ModelFileError(f"{name} has text with invalid characters.")


def _exactly(member, size: int, name: str) -> bytes:
    found = member.read(size)
    if len(found) != size:
        raise ModelFileError(f"{name} ends too early.")
    return found


def _damaged(name: str) -> ModelFileError:
    return ModelFileError(f"{name} was changed or damaged: its checksum does not match the manifest.")
