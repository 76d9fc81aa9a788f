"""What only the GPU's driver can tell or set: occupancy and the shared-memory carve-out."""

import ctypes
import functools
from pathlib import Path

#: CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT of the CUDA driver API.
_CARVEOUT = 9

_LIBRARIES = {"cuda": "libcuda.so.1", "hip": "libamdhip64.so"}
_OCCUPANCY = {
    "cuda": "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "hip": "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor",
}


def workgroups_per_cu(backend, function, threads, lds_bytes):
    """Workgroups of a loaded kernel that a compute unit holds, by the driver's own rules.

    Parameters
    ----------
    backend : str
        ``cuda`` or ``hip``.
    function : int
        Handle of the kernel.
    threads : int
        Of a workgroup.
    lds_bytes : int
        Asked for at launch [B].

    Returns
    -------
    int

    Raises
    ------
    OSError
        If the driver refuses.
    """
    found = ctypes.c_int()
    ask = getattr(_library(backend), _OCCUPANCY[backend])
    _checked(ask(ctypes.byref(found), ctypes.c_void_p(function), ctypes.c_int(threads),
                 ctypes.c_size_t(lds_bytes)), _OCCUPANCY[backend])
    return found.value


def set_carveout(backend, function, percent):
    """Prefer a share of a compute unit's memory for LDS in all later launches of a kernel.

    Parameters
    ----------
    backend : str
        AMD's LDS is apart from its caches: there is nothing to set, and nothing is.
    function : int
        Handle of the kernel.
    percent : int
        0 to 100, or -1: left to the driver.

    Raises
    ------
    OSError
        If the driver refuses.
    """
    if backend == "cuda":
        _checked(_library(backend).cuFuncSetAttribute(
            ctypes.c_void_p(function), _CARVEOUT, ctypes.c_int(percent)), "cuFuncSetAttribute")


#: Fields of a device and the driver's attribute (CUdevice_attribute) that tells each, with its
#: scale.
_ATTRIBUTES = {
    "clock_hz": (13, 1e3),
    "workgroups_per_compute_unit": (106, 1),
    "lds_reserve_bytes_per_workgroup": (111, 1),
}


def attributes(backend):
    """What the driver tells of GPU number 0 beyond its properties, dict of field to value.

    Parameters
    ----------
    backend : str
        Only CUDA's attributes are known here; for others the dict is empty.
    """
    found = {}
    for field, (attribute, scale) in _ATTRIBUTES.items() if backend == "cuda" else ():
        value = ctypes.c_int()
        if not _library(backend).cuDeviceGetAttribute(
                ctypes.byref(value), ctypes.c_int(attribute), ctypes.c_int(0)):
            found[field] = value.value * scale
    return found


@functools.cache
def _library(backend):
    # The one that runs already: torch's wheel for ROCm brings its own, in a folder of its own.
    name = _LIBRARIES[backend]
    mapped = [line.split(maxsplit=5)[-1] for line in _mapped_files() if f"/{name}" in line]
    return ctypes.CDLL(mapped[0] if mapped else name)


def _mapped_files():
    try:
        return Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _checked(code, what):
    if code:
        raise OSError(f"the GPU's driver refused {what}: error {code}")
