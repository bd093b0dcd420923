"""LAPACK without the interpreter's lock, so that folds run side by side on threads.

SciPy's wrappers keep the lock while LAPACK works. SciPy publishes the same routines for Cython, as pointers, and a call
of a pointer by ctypes releases the lock.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char, c_int, c_void_p, py_object

import numpy as np
from scipy.linalg import cython_lapack


def _routine(name: str):
    """A routine of LAPACK, all of whose arguments are pointers."""
    capsule, api = cython_lapack.__pyx_capi__[name], ctypes.pythonapi
    signature = ctypes.PYFUNCTYPE(ctypes.c_char_p, py_object)(("PyCapsule_GetName", api))(capsule)
    address = ctypes.PYFUNCTYPE(c_void_p, py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))(capsule, signature)
    n_arguments = signature.count(b",") + 1
    return ctypes.CFUNCTYPE(None, *[c_void_p] * n_arguments)(address)


_potrf, _potri, _potrs = (_routine(name) for name in ("dpotrf", "dpotri", "dpotrs"))


def _pointer(A: np.ndarray) -> c_void_p:
    if A.dtype != np.float64 or not A.flags.c_contiguous or not A.flags.writeable:
        raise ValueError("LAPACK needs rows of float64 that lie one after the other and may be overwritten.")
    return c_void_p(A.ctypes.data)


def _factorised(G: np.ndarray) -> tuple:
    """Overwrite the upper triangle of G by its Cholesky factor; return the arguments of the routines that use it."""
    m, info = c_int(len(G)), c_int(0)
    lower = byref(c_char(b"L"))  # rows of NumPy are columns of LAPACK
    _potrf(lower, byref(m), _pointer(G), byref(m), byref(info))
    if info.value:
        raise np.linalg.LinAlgError("The kernel matrix of a sample is not positive definite.")
    return lower, byref(m), _pointer(G), byref(m), byref(info)


def inverse(G: np.ndarray) -> np.ndarray:
    """G⁻¹ of a positive definite G, in its place; only the upper triangle of G is read."""
    _potri(*_factorised(G))
    np.copyto(G, G.T, where=np.tri(len(G), k=-1, dtype=bool))
    return G


def solve(G: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """G⁻¹Y of a positive definite G, which is overwritten; only its upper triangle is read."""
    lower, m, factor, _, info = _factorised(G)
    columns = np.array(Y.T, dtype=np.float64, order="C")
    _potrs(lower, m, byref(c_int(len(columns))), factor, m, _pointer(columns), m, info)
    return columns.T
