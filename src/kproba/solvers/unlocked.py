"""LAPACK and BLAS without the interpreter's lock, so that folds and regions run side by side on threads.

SciPy's wrappers keep the lock while LAPACK works. SciPy publishes the same routines for Cython, as pointers, and a call
of a pointer by ctypes releases the lock. Matrices are overwritten. LAPACK stores columns where NumPy stores rows, so it
sees the transpose of an array: of symmetric matrices the upper triangle is read, and their lower factors L are
transposed views.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char, c_double, c_int, c_void_p, py_object

import numpy as np
from scipy.linalg import cython_blas, cython_lapack


def _routine(module, name: str):
    """A routine all of whose arguments are pointers."""
    capsule, api = module.__pyx_capi__[name], ctypes.pythonapi
    signature = ctypes.PYFUNCTYPE(ctypes.c_char_p, py_object)(("PyCapsule_GetName", api))(capsule)
    address = ctypes.PYFUNCTYPE(c_void_p, py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))(capsule, signature)
    n_arguments = signature.count(b",") + 1
    return ctypes.CFUNCTYPE(None, *[c_void_p] * n_arguments)(address)


_potrf, _potrs, _trtri, _lauum = (_routine(cython_lapack, name) for name in ("dpotrf", "dpotrs", "dtrtri", "dlauum"))
_trsm, _trmm, _syrk = (_routine(cython_blas, name) for name in ("dtrsm", "dtrmm", "dsyrk"))

#: LAPACK inverts triangles of up to this many rows; OpenBLAS's own routine is slow for larger ones.
TRIANGLE = 64


def _letter(letter: bytes):
    return byref(c_char(letter))


def _number(value: int):
    return byref(c_int(value))


def _pointer(A: np.ndarray) -> c_void_p:
    if A.dtype != np.float64 or not A.flags.c_contiguous or not A.flags.writeable:
        raise ValueError("LAPACK needs rows of float64 that lie one after the other and may be overwritten.")
    return c_void_p(A.ctypes.data)


def factor(G: np.ndarray) -> np.ndarray | None:
    """L with LLᵀ = G in its lower triangle, in the memory of G; None if G is not positive definite."""
    m, info = _number(len(G)), c_int(0)
    _potrf(_letter(b"L"), m, _pointer(G), m, byref(info))
    return None if info.value else G.T


def factor_or_raise(G: np.ndarray) -> np.ndarray:
    """The same, with a LinAlgError in the place of None."""
    lower = factor(G)
    if lower is None:
        raise np.linalg.LinAlgError("The kernel matrix of a sample is not positive definite.")
    return lower


def inverse(G: np.ndarray) -> np.ndarray:
    """G⁻¹ of a positive definite G, in its place."""
    m = _number(len(G))
    _invert_triangle(factor_or_raise(G).ctypes.data, len(G), len(G))
    _lauum(_letter(b"L"), m, _pointer(G), m, byref(c_int(0)))
    for start in range(0, len(G), TRIANGLE):
        rows = slice(start, start + TRIANGLE)
        G[rows.stop :, rows] = G[rows, rows.stop :].T
        block = G[rows, rows]
        np.copyto(block, block.T, where=_below(len(block)))
    return G


def solve(G: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """G⁻¹Y of a positive definite G."""
    return solve_factored(factor_or_raise(G), Y)


def solve_factored(lower: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """(LLᵀ)⁻¹Y; nothing is overwritten."""
    columns, m = np.array(Y.T, dtype=np.float64, order="C"), _number(len(lower))
    _potrs(_letter(b"L"), m, _number(len(columns)), _pointer(lower.T), m, _pointer(columns), m, byref(c_int(0)))
    return columns.T


def solve_lower(lower: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """L⁻¹x of every row x, in its place."""
    m = _number(len(lower))
    what = _letter(b"L"), _letter(b"L"), _letter(b"N"), _letter(b"N")
    _trsm(*what, m, _number(len(rows)), byref(c_double(1.0)), _pointer(lower.T), m, _pointer(rows), m)
    return rows


def diagonal_of_inverse(lower: np.ndarray) -> np.ndarray:
    """The diagonal of (LLᵀ)⁻¹: the squared column norms of L⁻¹, which takes the place of L."""
    G, out = lower.T, np.empty(len(lower))
    _invert_triangle(_pointer(G).value or 0, len(G), len(G))
    for start in range(0, len(G), TRIANGLE):
        rows = G[start : start + TRIANGLE, start:]
        np.copyto(block := rows[:, : len(rows)], 0.0, where=_below(len(block)))
        np.einsum("ij,ij->i", rows, rows, out=out[start : start + TRIANGLE])
    return out


def add_gram(rows: np.ndarray, sign: float, out: np.ndarray) -> None:
    """Add ± AᵀA of some rows A (k, m) to the upper triangle of ``out`` (m, m)."""
    m, one = _number(len(out)), byref(c_double(1.0))
    what, k = (_letter(b"L"), _letter(b"N")), _number(len(rows))
    _syrk(*what, m, k, byref(c_double(sign)), _pointer(rows), m, one, _pointer(out), m)


def _invert_triangle(address: int, m: int, stride: int) -> None:
    """Replace a lower triangle of m rows by its inverse, by halves: of (A 0; B C), B becomes −C⁻¹·B·A⁻¹."""
    apart = _number(stride)
    if m <= TRIANGLE:
        _trtri(_letter(b"L"), _letter(b"N"), _number(m), c_void_p(address), apart, byref(c_int(0)))
        return
    half = m // 2
    below, last = address + 8 * half, address + 8 * half * (stride + 1)
    _invert_triangle(address, half, stride)
    _invert_triangle(last, m - half, stride)
    size = _number(m - half), _number(half)
    for side, sign, triangle in ((b"L", -1.0, last), (b"R", 1.0, address)):
        what = _letter(side), _letter(b"L"), _letter(b"N"), _letter(b"N"), *size, byref(c_double(sign))
        _trmm(*what, c_void_p(triangle), apart, c_void_p(below), apart)


def _below(m: int) -> np.ndarray:
    """Where the lower triangle is, without the diagonal."""
    return np.tri(m, k=-1, dtype=bool)
