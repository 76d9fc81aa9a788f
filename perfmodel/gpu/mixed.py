"""Different GEMMs together, each with its own kernel."""

from dataclasses import dataclass, replace

import numpy as np

from perfmodel.equations import cache, contention
from perfmodel.equations import occupancy as rules
from perfmodel.equations.waves import waves
from perfmodel.gpu.kernels import Kernels, occupancy_of
from perfmodel.gpu.timing import ROUNDS, costs_of, isolated_time, pace_of
from perfmodel.problems import Gemms


@dataclass(frozen=True)
class Member:
    """One of the GEMMs that run together; arrays of shape (set,), one entry a set.

    Attributes
    ----------
    gemms : Gemms
    kernels : Kernels
    occupancy : ndarray
        Workgroups on a compute unit.
    carveout : ndarray
        Shared-memory carve-out under which the kernel runs by default [B].
    """

    gemms: Gemms
    kernels: Kernels
    occupancy: np.ndarray
    carveout: np.ndarray

    def __getitem__(self, index):
        arrays = (self.gemms, self.kernels, self.occupancy, self.carveout)
        return Member(*(array[index] for array in arrays))


def member_of(device, gemms, kernels):
    """A member of sets on a device.

    Parameters
    ----------
    device : Gpu
    gemms : Gemms
    kernels : Kernels

    Returns
    -------
    Member
    """
    workgroups, _ = occupancy_of(device, kernels)
    carveout = rules.default_carveout(
        kernels.lds_bytes, workgroups, device.lds_bytes_per_compute_unit,
        device.lds_reserve_bytes_per_workgroup)
    return Member(gemms, kernels, workgroups, carveout)


def mixed_time(machine, members, one_carveout=False):
    """Time of different GEMMs, one launch on a branch each, until all have ended [s].

    L2 is warm. Order of the members does not matter.

    Parameters
    ----------
    machine : Machine
    members : sequence of Member, at least 2
    one_carveout : array_like of bool, optional
        Whether all kernels were set to one shared-memory carve-out; by default each has its own,
        and kernels whose carve-outs differ do not share a compute unit.

    Returns
    -------
    ndarray of float

    References
    ----------
    .. [1] Derived for this package from data/measurements/h200/gemm_pairs.csv.gz, mixed_pairs and
       mixed_quadruples. Tried on 2 and 4 members. Where carve-outs differ the time is at most that
       of one after the other; data/measurements/h200/micro/carveout.csv shows up to 2.5 times that
       (switching the carve-out is not free), so such a clash is predicted too fast.
    """
    # Single launches do not last: the power limit bites less than on launches replayed for long.
    machine = replace(machine, clock_drop_share=machine.member_clock_drop_share)
    costs = [costs_of(machine, member.gemms, member.kernels) for member in members]
    footprint = sum(cost.footprint for cost in costs)
    miss = cache.miss_fraction(footprint, machine.l2_capacity_bytes)
    units = machine.compute_units
    # A set is a graph of single launches: it starts once, and no launch follows another.
    launching = machine.launch_gap_s + machine.graph_start_s / ROUNDS
    alone, busy = [], []
    for member, cost in zip(members, costs):
        pace = pace_of(machine, member.kernels, cost, footprint, float(len(members)))
        wave = pace.seconds(member.occupancy, units)
        busy.append(waves(cost.workgroups, units, member.occupancy) * wave)
        isolated = isolated_time(machine, member.gemms, member.kernels, member.occupancy)
        alone.append(isolated - launching)
    carveouts = np.stack([member.carveout for member in members])
    shared = sum(cost.workgroups for cost in costs) > units
    return contention.mixed_seconds(
        np.stack(busy), np.where(one_carveout, 0.0, carveouts), np.stack(alone), shared,
        machine.graph_start_s, machine.member_start_s,
        cache.hbm_seconds(footprint, miss, machine.hbm_bytes_per_s))
