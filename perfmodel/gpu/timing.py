"""Isolated and concurrent time of equal GEMMs on a GPU.

Everything broadcasts. For a whole space index the inputs apart, in the order (problem, kernel,
degree): ``gemms[:, None, None]``, ``kernels[None, :, None]``, ``degree[None, None, :]``.
"""

from dataclasses import dataclass, replace

import numpy as np

from perfmodel.equations import cache, contention, graph, loop, roofline, tiles, waves
from perfmodel.equations.power import power_cycles
from perfmodel.gpu.machine import Machine

#: Launches on each branch in the measurements; what a stream of layers looks like.
ROUNDS = 3

#: Bytes of an element of C as it leaves a workgroup where parts are added (fp32); elsewhere C has
#: the operands' dtype.
SPLIT_BYTES = 4


@dataclass(frozen=True)
class Costs:
    """What a workgroup of a kernel costs on a problem; no array knows the degree.

    Attributes
    ----------
    workgroups, steps : ndarray
        Workgroups of one launch, steps of the main loop.
    unit, core, feed, power : ndarray
        Of one step: matrix unit, compute unit, operand feed, and what the power limit adds [clk].
    store, interleaved : ndarray
        Of one workgroup [clk].
    start : ndarray
        What a workgroup spends once [clk].
    footprint : ndarray
        Of one launch [B].
    """

    workgroups: np.ndarray
    steps: np.ndarray
    unit: np.ndarray
    core: np.ndarray
    feed: np.ndarray
    power: np.ndarray
    store: np.ndarray
    interleaved: np.ndarray
    start: np.ndarray
    footprint: np.ndarray


def costs_of(machine, gemms, kernels):
    """Costs of each kernel on each problem.

    Parameters
    ----------
    machine : Machine
    gemms : Gemms
    kernels : Kernels
        Broadcast against the problems.

    Returns
    -------
    Costs
    """
    element = gemms.bytes_per_element
    tile = (kernels.macro_tile_m, kernels.macro_tile_n)
    split = kernels.split_k > 1
    output_bytes = np.where(split, SPLIT_BYTES, gemms.bytes_per_output)
    steps = tiles.depth_steps(gemms.k, kernels.depth_u, kernels.split_k)
    flop = tiles.step_flop(*tile, kernels.depth_u)
    matrix = loop.matrix_cycles(
        flop, machine.matrix_flop_per_clk, kernels.serialised, machine.serialised_share)
    lds = tiles.matrix_read_bytes(*tile, kernels.depth_u, kernels.warps, element)
    feed = loop.feed_cycles(
        tiles.step_bytes(*tile, kernels.depth_u, element),
        tiles.row_requests(kernels.macro_tile_m, kernels.depth_u, element),
        tiles.straddled_lines(gemms.k, gemms.n, *tile, kernels.depth_u, element),
        machine.row_request_bytes, machine.straddled_line_bytes, machine.port_bytes_per_clk,
    )
    unit = loop.unit_cycles(matrix, lds / machine.lds_bytes_per_clk)
    core = loop.core_cycles(unit, feed)
    store = loop.store_cycles(
        tiles.stored_elements(gemms.m, gemms.n, *tile), output_bytes,
        np.where(split, machine.atomic_bytes_per_clk, machine.store_bytes_per_clk),
    )
    wide = machine.wide_start_clk * np.maximum(kernels.warps / tiles.WARPGROUP - 1.0, 0.0)
    drawn = power_cycles(
        flop / machine.matrix_flop_per_clk, gemms.flop, machine.clock_drop_share,
        machine.clock_drop_flop)
    return Costs(
        workgroups=tiles.workgroups(gemms.m, gemms.n, gemms.batch, *tile, kernels.split_k),
        steps=steps,
        unit=unit,
        core=core,
        feed=feed,
        power=drawn,
        store=store,
        interleaved=contention.interleaved_cycles(steps, core + drawn, store, wide),
        start=machine.workgroup_start_clk + wide,
        footprint=roofline.gemm_bytes(
            gemms.m, gemms.n, gemms.k, gemms.batch, element, output_bytes),
    )


@dataclass(frozen=True)
class Pace:
    """How fast workgroups of a kernel get through, with any number of residents.

    Attributes
    ----------
    machine : Machine
    stages : ndarray
    costs : Costs
    degree : ndarray
        Branches running at the same time.
    miss : ndarray
        Share of operands no longer in L2.
    latency : ndarray
        Of a load on an idle chip [clk].
    """

    machine: Machine
    stages: np.ndarray
    costs: Costs
    degree: np.ndarray
    miss: np.ndarray
    latency: np.ndarray

    def seconds(self, residents, active):
        """Time until all residents of a compute unit are done, `active` units being at work [s]."""
        cycles = contention.workgroup_cycles(
            residents, self._lockstep(residents, active), self._lockstep(1.0, active),
            self.costs.interleaved, self.degree, self.machine.shuffle_exponent)
        return cycles / self.machine.clock_hz

    def alone_seconds(self, active):
        """Time of one workgroup that has its compute unit to itself [s]."""
        return self._lockstep(1.0, active) / self.machine.clock_hz

    def _lockstep(self, residents, active):
        costs, machine = self.costs, self.machine
        share = active / machine.compute_units
        loaded = self.latency * (1.0 + machine.loaded_latency_share * share)
        step = loop.step_cycles(
            residents, costs.unit, costs.feed, loaded, self.stages, machine.overlap_exponent)
        step = step + residents * costs.power
        return contention.lockstep_cycles(
            residents, costs.steps, step, costs.feed, self.latency, self.stages, costs.store,
            costs.start, machine.pipeline_fill_share)


def pace_of(machine, kernels, costs, footprint, degree, cold=False):
    """The pace of kernels beside others.

    Parameters
    ----------
    machine : Machine
    kernels : Kernels
    costs : Costs
    footprint : ndarray
        Bytes of everything that is replayed [B].
    degree : ndarray
        Branches running at the same time.
    cold : ndarray of bool
        Whether L2 is empty at the start.

    Returns
    -------
    Pace
    """
    miss = np.where(cold, 1.0, cache.miss_fraction(footprint, machine.l2_capacity_bytes))
    latency = cache.load_latency(machine.load_latency_clk, machine.miss_latency_share, miss)
    return Pace(machine, kernels.stages, costs, degree, miss, latency)


def concurrent_time(machine, gemms, kernels, occupancy, degree, rounds=ROUNDS, cold=False):
    """Time in which each of `degree` branches runs one launch of the same GEMM [s].

    Each branch has its own operands and launches the GEMM `rounds` times back to back; L2 is warm
    from earlier replays, as it is where layers of a model follow each other, or cold. The time is
    that of all, divided by `rounds`. Degree 1 is the isolated time.

    Parameters
    ----------
    machine : Machine
    gemms : Gemms
    kernels : Kernels
    occupancy : array_like
        Workgroups of each kernel that a compute unit holds (`kernels.occupancy_of`); the time is
        NaN where that is 0.
    degree : array_like of int
        Concurrency degree, at least 1.
    rounds : array_like of int, optional
    cold : array_like of bool, optional
        Whether L2 is empty at the first launch of each branch.

    Returns
    -------
    ndarray of float

    References
    ----------
    .. [1] Derived for this package from data/measurements/h200/gemm_concurrent.csv.gz, and for a
       cold L2 from cold.csv.gz beside it. Valid for equal GEMMs, main loops with prefetch.
    """
    return modelled_time(
        machine, gemms, kernels, occupancy, degree, degree, rounds, cold, tail=True)


def isolated_time(machine, gemms, kernels, occupancy):
    """Time of one launch of a GEMM that has the chip to itself [s]: `concurrent_time` at degree 1.

    Parameters
    ----------
    machine, gemms, kernels, occupancy
        As in `concurrent_time`.
    """
    return concurrent_time(machine, gemms, kernels, occupancy, 1)


def waiting_time(machine, gemms, kernels, occupancy, waiting, degree, rounds):
    """Time in which all of `waiting` equal GEMMs are run, `degree` at a time [s].

    Each has its own operands. One graph of `degree` branches launches waiting / degree of them
    back to back on each branch, and the whole of that `rounds` times over (1: run once, 3: a
    stream); replays of the graph follow each other, so L2 is warm as far as it holds the operands
    of all that wait. The time is that of the graph, divided by `rounds`.

    Parameters
    ----------
    machine, gemms, kernels, occupancy
        As in `concurrent_time`.
    waiting : array_like of int
        A multiple of the degree. Where it is the degree, this is `concurrent_time`.
    degree, rounds : array_like of int
        At least 1.

    Returns
    -------
    ndarray of float

    References
    ----------
    .. [1] Derived for this package from data/measurements/h200/waiting.csv.gz. Valid as
       `concurrent_time` is, for graphs that are replayed.
    """
    return modelled_time(
        machine, gemms, kernels, occupancy, waiting, degree, rounds, False, tail=True)


def modelled_time(machine, gemms, kernels, occupancy, waiting, degree, rounds, cold, tail):
    """`waiting_time` or that of a cold L2, the last wave's tail whole or but its share [s].

    Parameters
    ----------
    machine, gemms, kernels, occupancy, waiting, degree, rounds
        As in `waiting_time`.
    cold : array_like of bool
        As in `concurrent_time`.
    tail : bool
    """
    waiting, degree = np.asarray(waiting, float), np.asarray(degree, float)
    cold = np.asarray(cold, bool)
    # A graph that finds L2 empty does not follow at another's heels.
    machine = replace(machine, graph_interval_s=np.where(cold, 0.0, machine.graph_interval_s))
    inputs = (machine, gemms, kernels, occupancy, waiting, degree)
    seconds = _graph_time(*inputs, waiting / degree * rounds, np.asarray(False), tail)
    if cold.any():
        first, again = (_graph_time(*inputs, 1.0, state, tail) for state in (cold, np.asarray(False)))
        seconds = seconds + np.where(cold, first - again, 0.0)
    return seconds / rounds


def _graph_time(machine, gemms, kernels, occupancy, waiting, degree, launches, cold, tail):
    """Time of a graph of `degree` branches with so many launches each [s]."""
    costs = costs_of(machine, gemms, kernels)
    pace = pace_of(machine, kernels, costs, waiting * costs.footprint, degree, cold)
    hbm = cache.hbm_seconds(degree * costs.footprint, pace.miss, machine.hbm_bytes_per_s)
    held = np.where(np.asarray(occupancy, float) >= 1, occupancy, np.nan)
    workgroups = degree * costs.workgroups
    units = machine.compute_units
    wave = pace.seconds(held, units)

    whole, rest = waves.last_wave(workgroups, units, held)
    partial = pace.seconds(waves.residents(rest, units), np.minimum(rest, units))
    share = rest / (units * held) * wave
    last = np.where(rest > 0, partial if tail else np.where(whole > 0, share, partial), 0.0)
    drained = contention.drained_seconds(machine.launch_gap_s, whole, wave, last)
    single = launches * contention.single_branch_seconds(drained, hbm)

    active = np.minimum(workgroups, units)
    reading = graph.memory_share(
        pace.miss, machine.swept_start_share, cold, machine.cold_start_share)
    start = reading * graph.branch_start_seconds(degree, launches, machine.branch_start_s)
    alone = machine.launch_gap_s + pace.alone_seconds(active)
    overlap = contention.overlap_share(launches, alone, start, machine.stagger_share)
    mean = contention.mean_residents(workgroups, units, held, overlap, machine.fullest_share)
    chain = contention.chain_seconds(
        launches, machine.launch_gap_s, waves.waves(costs.workgroups, units, held),
        pace.seconds(mean, active))
    flow = contention.flow_seconds(
        launches, waves.waves(workgroups, units, held), wave, machine.launch_gap_s, degree,
        machine.tail_share if tail else 0.0, drained)
    several = contention.branches_seconds(
        chain, flow, start, machine.exposed_start_share, launches * hbm)
    return graph.graph_seconds(
        np.where(degree > 1, several, single), reading * machine.graph_start_s,
        machine.graph_interval_s, start)
