"""The file itself: a zip of a manifest, one JSON text and plain arrays, read within limits that are checked first."""

from __future__ import annotations

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
#: A reader refuses another major version, and warns of a newer minor one.
VERSION = (1, 0)
#: Which kproba reads which major version.
READERS = {1: "0.1"}
MANIFEST, DIGEST, MODEL = "manifest.json", "manifest.sha256", "model.json"
#: Most members of a file; beyond, the zip directory alone would take much memory.
MOST_MEMBERS = 65_000
#: What the directory of the zip may take for every member: its fixed part, and a name.
DIRECTORY_BYTES = 200
#: Deflated members may be so many times larger than what is stored: bombs of zeros are a thousand times larger.
MOST_RATIO = 200
#: Bytes of model.json, and how many values may stand in it: every value costs up to some hundred bytes of memory.
JSON_BYTES, JSON_VALUES, BYTES_A_VALUE = 64 << 20, 4_000_000, 64
#: Values that JSON may have for every byte of the file, deflated or not, beside those that a small file may have.
VALUES_A_BYTE, FEW_VALUES = 8, 10_000
#: Digits of a whole number: ``save`` writes numbers of up to 1,024 bits.
MOST_DIGITS = 310
BLOCK = 1 << 20
#: The zip format needs some date; a fixed one makes equal models equal files.
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
    """Write all members; the file appears at ``path`` once it is complete, and not at all after an error."""
    text = json.dumps(model, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
    _check_json_size(text, JSON_VALUES)
    if len(arrays) > MOST_MEMBERS - 3:
        raise ModelFileError(f"the model has {len(arrays)} arrays; a model file holds {MOST_MEMBERS - 3} at most.")
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
    """A .npy file as its header and the numbers, without a copy of those where they lie in order."""
    head = io.BytesIO()
    fields = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(head, fields)
    flat = np.ascontiguousarray(array.reshape(-1, order="F" if fields["fortran_order"] else "C"))
    return [head.getvalue(), flat.view(np.uint8).data if flat.size else b""]


# ---------------------------------------------------------------- reading


class Archive:
    """The members of an open model file, whose names and sizes have been checked against each other and the limits."""

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
            raise ModelFileError("two members of the zip have the same name.")
        for info in infos:
            _check_info(info)
        if sum(info.compress_size for info in infos) > self.size:
            raise ModelFileError("its members overlap: together they are larger than the file.")
        self.n_bytes = sum(info.file_size for info in infos)
        if self.n_bytes > self.max_bytes:
            raise ModelFileError(
                f"it takes {self.n_bytes:,} bytes unpacked, and max_bytes={self.max_bytes:,}; raise max_bytes if you "
                "trust it."
            )

    def _read_manifest(self) -> tuple[tuple[int, int], dict[str, dict[str, Any]]]:
        for name in (MANIFEST, DIGEST, MODEL):
            if name not in self._infos:
                raise ModelFileError(f"it is no model file of kproba: it has no member {name}.")
        text = self._read_whole(MANIFEST, 1000 + 200 * len(self._infos))
        if self._read_whole(DIGEST, 64) != hashlib.sha256(text).hexdigest().encode():
            raise ModelFileError("its manifest was changed or damaged: the checksum is another one.")
        manifest = parsed(text, self._most_values)
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ModelFileError(f"it is no model file of kproba: its manifest does not say {FORMAT!r}.")
        return _checked_version(manifest.get("version")), _checked_entries(manifest.get("members"))

    def _check_members(self) -> None:
        """The zip has the members of the manifest, no others, and of the same sizes."""
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
        """What stands in model.json."""
        text = self._read_whole(MODEL, JSON_BYTES)
        if hashlib.sha256(text).hexdigest() != self._members[MODEL]["sha256"]:
            raise _damaged(MODEL)
        return parsed(text, self._most_values)

    @property
    def _most_values(self) -> int:
        """Values of JSON, by the size of the file itself: text of brackets alone is deflated to next to nothing."""
        return min(JSON_VALUES, self.max_bytes // BYTES_A_VALUE, FEW_VALUES + VALUES_A_BYTE * self.size)

    def array(self, number: int) -> np.ndarray:
        """One array. Memory is taken once shape and type are known to go with the size of the member."""
        name = array_name(number)
        digest, size = hashlib.sha256(), self._infos[name].file_size
        with self._zip.open(self._infos[name]) as member:
            head = _exactly(member, 10, name)
            length = struct.unpack("<H", head[8:])[0]
            header = _exactly(member, length, name)
            dtype, shape, fortran = _parsed_header(name, head, header)
            count = math.prod(shape)
            if count * dtype.itemsize != size - 10 - length:
                raise ModelFileError(f"{name} says shape {shape} of {dtype}, which is not what its {size} bytes hold.")
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
            raise ModelFileError(f"{name} has {size:,} bytes; {most:,} is the most that is read.")
        with self._zip.open(self._infos[name]) as member:
            return _exactly(member, size, name)


def _checked_size(file: BinaryIO) -> int:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError("it is no regular file.")
    return status.st_size


def _check_directory_size(file: BinaryIO, size: int) -> None:
    """Refuse a zip whose directory alone would fill the memory, before a library reads it."""
    file.seek(max(0, size - 98))
    tail = file.read(98)
    if len(tail) < 22 or tail[-22:-18] != b"PK\x05\x06":
        raise ModelFileError("it is no model file of kproba, or its end is missing: no zip directory was found.")
    members, directory_bytes = struct.unpack("<HI", tail[-12:-6])
    if tail[-42:-38] == b"PK\x06\x07":  # a zip beyond 4 GiB has its numbers in another record
        if tail[:4] != b"PK\x06\x06":
            raise ModelFileError("the directory of the zip is damaged.")
        members, directory_bytes = struct.unpack("<QQ", tail[32:48])
    if members > MOST_MEMBERS or directory_bytes > DIRECTORY_BYTES * (members + 1):
        raise ModelFileError(f"its zip directory has {members} members and {directory_bytes} bytes, which is too much.")
    file.seek(0)


def _check_info(info: zipfile.ZipInfo) -> None:
    name, kind = shortened(info.filename), stat.S_IFMT(info.external_attr >> 16)
    if info.flag_bits & 0x61:  # encrypted, patched, strongly encrypted
        raise ModelFileError(f"its member {name} is encrypted.")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ModelFileError(f"its member {name} is compressed by another method than deflate.")
    if kind not in (0, stat.S_IFREG):
        raise ModelFileError(f"its member {name} is a link or something else that is no plain file.")
    if info.compress_type == zipfile.ZIP_STORED and info.file_size != info.compress_size:
        raise ModelFileError(f"its member {name} is stored, but of two sizes.")
    if info.file_size > MOST_RATIO * max(info.compress_size, 1):
        raise ModelFileError(f"its member {name} unpacks to over {MOST_RATIO} times its size: a zip bomb?")


def _checked_version(version: Any) -> tuple[int, int]:
    if not (isinstance(version, list) and len(version) == 2 and all(type(part) is int for part in version)):
        raise ModelFileError(f"its format version {shortened(version)} is no pair of whole numbers.")
    major, minor = version
    if major != VERSION[0]:
        use = f"kproba {READERS[major]}" if major in READERS else "a newer kproba"
        raise ModelFileError(f"its format version is {major}.{minor}, this kproba reads {VERSION[0]}; use {use}.")
    return major, minor


def _checked_entries(members: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(members, dict) or not members:
        raise ModelFileError("its manifest lists no members.")
    for name, entry in members.items():
        good = isinstance(entry, dict) and set(entry) == {"sha256", "size"}
        if not good or type(entry["size"]) is not int or not isinstance(entry["sha256"], str):
            raise ModelFileError(f"the manifest has no checksum and size of {shortened(name)}.")
    return members


def parsed(text: bytes, most_values: int) -> Any:
    """JSON, after a look at how much of it there is; what is nested too deeply or written twice is refused."""
    _check_json_size(text, most_values)
    try:
        return json.loads(
            text, object_pairs_hook=_without_doubles, parse_constant=_no_constant, parse_int=_whole_number
        )
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
            f"{MODEL} has {len(text):,} bytes and about {n_values:,} values; {JSON_BYTES:,} and {most_values:,} are "
            "the most. Numbers and text belong into arrays."
        )


def _whole_number(digits: str) -> int:
    """Reading digits takes a time that grows with the square of their number."""
    if len(digits) > MOST_DIGITS:
        raise ModelFileError(f"its JSON has a whole number of {len(digits):,} digits; {MOST_DIGITS} is the most.")
    return int(digits)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ModelFileError("its JSON has a name twice in one object.")
    return found


def _no_constant(name: str):
    raise ModelFileError(f"its JSON has {name}, which is no JSON.")


def _parsed_header(name: str, head: bytes, header: bytes) -> tuple[np.dtype, tuple[int, ...], bool]:
    """Type and shape of a .npy file, by a pattern: NumPy's own reader would compile the text."""
    match = _HEADER.fullmatch(header.decode("latin1")) if head[:8] == _MAGIC else None
    if match is None:
        raise ModelFileError(f"{name} is no array of plain numbers, truth values, dates or text.")
    dtype = np.dtype(match[1])
    shape = tuple(int(part) for part in match[3].split(",") if part.strip())
    if len(shape) > MOST_DIMENSIONS or dtype.itemsize * math.prod(max(1, n) for n in shape) > 1 << 62:
        raise ModelFileError(f"{name} has the shape {str(shape)[:80]}, which no model has.")
    return dtype, shape, match[2] == "True"


def _fill(member, flat: np.ndarray, name: str, digest, before) -> None:
    for part in before:
        digest.update(part)
    view = flat.data if flat.size else memoryview(b"")
    done = 0
    while done < len(view):
        n = member.readinto(view[done : done + BLOCK])
        if not n:
            raise ModelFileError(f"{name} ends before all its numbers have come.")
        digest.update(view[done : done + n])
        done += n
    if member.read(1):  # also has the zip's own checksum compared
        raise ModelFileError(f"{name} goes on after its numbers.")


def _check_values(name: str, flat: np.ndarray) -> None:
    """Bytes that are no value of their type: NumPy counts on truth values of 0 and 1 where it counts and copies."""
    if flat.dtype.kind == "b" and flat.size and flat.view(np.uint8).max() > 1:
        raise ModelFileError(f"{name} has truth values that are neither 0 nor 1.")
    if flat.dtype.kind == "U" and flat.size:
        codes = flat.view(np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder))
        if codes.max() > 0x10FFFF:
            raise ModelFileError(f"{name} has text with characters that do not exist.")


def _exactly(member, size: int, name: str) -> bytes:
    found = member.read(size)
    if len(found) != size:
        raise ModelFileError(f"{name} ends too early.")
    return found


def _damaged(name: str) -> ModelFileError:
    return ModelFileError(f"{name} was changed or damaged: its checksum is not that of the manifest.")
