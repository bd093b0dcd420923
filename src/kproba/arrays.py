"""Devices: an array library together with one of its devices, such as PyTorch on a GPU."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

try:
    import array_api_compat
except ImportError:  # scikit-learn has a copy
    from sklearn.externals import array_api_compat  # type: ignore[no-redef]

from .messages import needed

#: Size of the features of one batch: enough to keep a GPU busy, small compared to its memory.
BLOCK_BYTES = 1 << 30
_LIBRARIES = ("torch", "cupy", "array_api_strict")


def is_tensor(X) -> bool:
    """Whether X is an array of one of the supported libraries, on any device; nothing is imported."""
    return type(X).__module__.partition(".")[0] in _LIBRARIES and hasattr(X, "shape")


def to_numpy(X):
    """X as a NumPy array if it is a tensor; anything else unchanged."""
    return Device.of(X).get(X) if is_tensor(X) else X


def choose(wanted, X) -> Device | None:
    """The device for inputs X under the parameter ``device=wanted``; None for NumPy on the CPU."""
    asked = None if wanted is None or str(wanted) == "cpu" else _named(wanted)
    if not is_tensor(X):
        return asked
    found = Device.of(X)
    if wanted is not None and not _is_same(str(wanted), found):
        raise ValueError(
            f"X is on {found.name}, but device={str(wanted)!r}: move X there (X.to({str(wanted)!r}) in PyTorch), or "
            "set device=None to compute on the device of X."
        )
    return found


def _is_same(wanted: str, found: Device) -> bool:
    """Whether ``wanted`` names the device; "cuda" without a number matches any GPU."""
    return wanted == found.name or (":" not in wanted and wanted == found.name.partition(":")[0])


def _named(wanted) -> Device:
    """The PyTorch device with the name that the user gave."""
    name = str(wanted)
    if not re.fullmatch(r"cuda(:\d+)?", name):
        raise ValueError(f"device must be None, 'cpu', 'cuda' or 'cuda:<number>', got {wanted!r}.")
    torch = needed("torch", f"device={name!r} requires PyTorch", "torch")
    if not torch.cuda.is_available():
        raise RuntimeError(
            f"device={name!r}: PyTorch {torch.__version__} finds no GPU. Use device=None for the CPU, or install "
            "PyTorch with CUDA and check torch.cuda.is_available()."
        )
    number = int(name.partition(":")[2] or torch.cuda.current_device())
    if number >= torch.cuda.device_count():
        raise ValueError(f"device={name!r}: there are {torch.cuda.device_count()} GPUs, numbered from 0.")
    return Device("torch", f"cuda:{number}")


@dataclass(frozen=True)
class Device:
    """The names of a library and a device, and nothing else, so that objects that refer to it can be pickled."""

    library: str
    name: str

    @classmethod
    def of(cls, X) -> Device:
        """The device of a tensor."""
        library, device = type(X).__module__.partition(".")[0], array_api_compat.device(X)
        names = {"cupy": lambda: str(device.id), "array_api_strict": lambda: device._device}
        return cls(library, names.get(library, lambda: str(device))())

    @property
    def xp(self) -> Any:
        """The array API namespace."""
        return _namespace(self.library)

    @property
    def _handle(self) -> Any:
        """The device object of the library."""
        if self.library == "array_api_strict":
            return self.xp.Device(self.name)
        return import_module("cupy").cuda.Device(int(self.name)) if self.library == "cupy" else self.name

    @property
    def has_triton(self) -> bool:
        """Whether Triton kernels can run on the device."""
        return self._is_cuda and find_spec("triton") is not None

    @property
    def has_streams(self) -> bool:
        """Whether several threads can keep the device busy side by side."""
        return self._is_cuda

    @property
    def has_integer_products(self) -> bool:
        """Whether tensor cores multiply 8-bit integers."""
        return self.has_triton and import_module("torch").cuda.get_device_capability(self.name) >= (8, 0)

    def put(self, array, dtype=None):
        """Copy an array to the device; ``dtype`` is a NumPy dtype."""
        if not is_tensor(array):
            array = np.asarray(array)
            if not array.flags.writeable:  # PyTorch shares memory with NumPy and warns about read-only arrays
                array = array.copy()
        dtype = None if dtype is None else getattr(self.xp, np.dtype(dtype).name)
        return self.xp.asarray(array, dtype=dtype, device=self._handle)

    def put_ahead(self, array):
        """The same on a separate CUDA stream, for prefetching: on the default stream the copy would wait for
        computations."""
        if not self._is_cuda or is_tensor(array):
            return self.put(array)
        torch = import_module("torch")
        stream = torch.cuda.Stream(self.name)
        with torch.cuda.stream(stream):
            there = self.put(array)
        stream.synchronize()
        there.record_stream(torch.cuda.current_stream(self.name))  # keeps its memory until it has been used
        return there

    @property
    def _is_cuda(self) -> bool:
        return self.library == "torch" and self.name.startswith("cuda")

    def get(self, array) -> np.ndarray:
        """Copy an array from the device to NumPy."""
        if self.library == "torch":
            if not self._is_cuda:
                return array.detach().cpu().numpy()
            # memory of NumPy comes in huge pages: new small ones would take longer than the transfer
            torch, dtype = import_module("torch"), str(array.dtype).rpartition(".")[2]
            out = np.empty(tuple(array.shape), dtype)
            torch.from_numpy(out).copy_(array.detach())
            return out
        if self.library == "cupy":
            return array.get()
        return np.array(np.from_dlpack(array.to_device(self.xp.Device("CPU_DEVICE"))))

    def take(self, X, rows: np.ndarray) -> np.ndarray:
        """Some rows of a tensor, as NumPy."""
        return self.get(self.xp.take(X, self.put(rows), axis=0))

    def take_columns(self, X, columns: np.ndarray):
        """Some columns of a tensor, as a tensor."""
        return self.xp.take(X, self.put(columns), axis=1)

    def floats(self, X):
        """A tensor as float32 if it has at most that precision, otherwise as float64; detached from autograd."""
        X = X.detach() if self.library == "torch" else X
        low = [getattr(self.xp, name) for name in ("float32", "float16", "bfloat16") if hasattr(self.xp, name)]
        return self.xp.astype(X, self.xp.float32 if X.dtype in low else self.xp.float64, copy=False)

    def to_float64(self, X):
        """A tensor in float64."""
        return self.xp.astype(X, self.xp.float64, copy=False)

    def zeros(self, shape, dtype="float64"):
        return self.xp.zeros(shape, dtype=getattr(self.xp, dtype), device=self._handle)

    def eye(self, n: int):
        return self.xp.eye(n, dtype=self.xp.float64, device=self._handle)

    @property
    def free_bytes(self) -> float:
        """Free memory of the device; infinity if unknown."""
        if self._is_cuda:
            torch = import_module("torch")
            torch.cuda.empty_cache()
            return float(torch.cuda.mem_get_info(self.name)[0])
        return float("inf")

    def set_diagonal(self, matrix, values: np.ndarray) -> None:
        """Set the diagonal, in place."""
        there, places = self.put(values), range(len(values))
        if self.library == "array_api_strict":  # the standard has no other way
            for k in places:
                matrix[k, k] = there[k]
        else:
            index = self.put(np.arange(len(values)))
            matrix[index, index] = there

    def product(self, left, right):
        """A matrix product in full precision, whatever the global setting: TF32 would make H indefinite."""
        if not self._is_cuda:
            return left @ right
        torch = import_module("torch")
        allowed = torch.get_float32_matmul_precision()
        if allowed == "highest":
            return left @ right
        torch.set_float32_matmul_precision("highest")
        try:
            return left @ right
        finally:
            torch.set_float32_matmul_precision(allowed)

    def cholesky(self, matrix):
        """The lower Cholesky factor, from the lower triangle only; None if the matrix is not positive definite."""
        if self.library == "torch":
            lower, info = import_module("torch").linalg.cholesky_ex(matrix)
            return None if int(info.max()) else lower
        try:
            lower = self.xp.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            return None
        return lower if bool(self.xp.all(self.xp.isfinite(lower))) else None  # CuPy returns NaN instead of raising

    def cholesky_and_flag(self, matrix) -> tuple[Any, Any]:
        """The lower Cholesky factor, and a tensor that is not zero if there is none: nobody waits for the device."""
        if self.library == "torch":
            lower, info = import_module("torch").linalg.cholesky_ex(matrix)
            return lower, self.to_float64(info)
        lower = self.xp.linalg.cholesky(matrix)
        return lower, self.to_float64(~self.xp.all(self.xp.isfinite(lower)))

    def solve_lower(self, lower, right, transposed: bool = False):
        """L⁻¹B, or L⁻ᵀB."""
        if self.library == "torch":
            torch = import_module("torch")
            matrix = lower.mT if transposed else lower
            return torch.linalg.solve_triangular(matrix, right, upper=transposed)
        if self.library == "cupy":
            solve = import_module("cupyx.scipy.linalg").solve_triangular
            return solve(lower, right, lower=True, trans="T" if transposed else "N")
        return self.xp.linalg.solve(lower.mT if transposed else lower, right)


class Replayed:
    """A function of tensors that is called with NumPy arrays, of the same shapes each time, and returns one.

    A GPU takes longer to be told about many small operations than to carry them out, so the first call records them
    and the others replay the record, on a stream of their own: those of several threads run side by side. The function
    must not read values from the device.
    """

    def __init__(self, device: Device, function: Callable[..., Any]):
        self.device, self.function = device, function
        self._staged: list[Any] = []
        self._inputs: list[Any] = []
        self._graph: Any = None

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        if not self.device._is_cuda:
            return self.device.get(self.function(*map(self.device.put, arrays)))
        torch = import_module("torch")
        if self._graph is None:
            self._prepare(torch, arrays)
        with torch.cuda.stream(self._stream):
            for array, staged, there in zip(arrays, self._staged, self._inputs):
                np.copyto(staged.numpy(), array)
                there.copy_(staged, non_blocking=True)
            if self._graph:
                self._graph.replay()
            else:
                self._out = self.function(*self._inputs)
            return self.device.get(self._out)

    def _prepare(self, torch, arrays) -> None:
        """Record the operations, after a call that compiles kernels and loads libraries."""
        self._stream = torch.cuda.Stream(self.device.name)
        self._stream.wait_stream(torch.cuda.current_stream(self.device.name))
        with torch.cuda.stream(self._stream), _recording:
            # copies from memory that the system cannot move need not be waited for
            self._staged = [torch.from_numpy(np.array(array)).pin_memory() for array in arrays]
            self._inputs = [staged.to(self.device.name) for staged in self._staged]
            self.function(*self._inputs)
            self._stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            try:
                graph.capture_begin(capture_error_mode="thread_local")  # other threads may use the GPU meanwhile
                self._out = self.function(*self._inputs)
                graph.capture_end()
            except RuntimeError:  # an operation that cannot be recorded: carry it out each time
                graph = False
        self._graph = graph


#: Held by the thread that records: PyTorch keeps one record at a time.
_recording = threading.Lock()


@lru_cache
def _namespace(library: str):
    if library == "array_api_strict":
        return import_module(library)
    return import_module(f"{array_api_compat.__name__}.{library}")


def namespace_of(*arrays) -> Any:
    """The array API namespace of arrays of one library."""
    return array_api_compat.array_namespace(*arrays)


def dot(left, right) -> float:
    """The sum of the products of all entries of two arrays, as a number."""
    if isinstance(left, np.ndarray):
        return float(np.vdot(left, right))
    return float(namespace_of(left).sum(left * right))


def zeros_like(values):
    """Zeros in the place of an array."""
    return np.zeros_like(values) if isinstance(values, np.ndarray) else namespace_of(values).zeros_like(values)


def copied(values):
    """A copy in the same place."""
    return values.copy() if isinstance(values, np.ndarray) else namespace_of(values).asarray(values, copy=True)


def in_place(name: str, values):
    """Apply exp, sqrt or another elementwise function, in place if the library supports it."""
    if isinstance(values, np.ndarray):
        return getattr(np, name)(values, out=values)
    if hasattr(values, f"{name}_"):
        return getattr(values, f"{name}_")()
    return getattr(namespace_of(values), name)(values)


def clip_negative(values):
    """max(v, 0) elementwise, in place if the library supports it."""
    if isinstance(values, np.ndarray):
        return np.maximum(values, 0.0, out=values)
    if hasattr(values, "clamp_"):
        return values.clamp_(min=0.0)
    return array_api_compat.array_namespace(values).clip(values, 0.0)
