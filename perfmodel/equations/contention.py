"""Contention: workgroups that share a compute unit, and GEMMs that share the chip.

Two views bound what happens on a compute unit. In lock-step all residents load, multiply and store
at the same time; interleaved, one works while another waits. Copies started together run in
lock-step; the more branches there are, the more they are shuffled.

And two views bound what happens on the chip: a branch is a serial chain of its own launches, and
all branches together are a flow of workgroups through the compute units.
"""

import numpy as np

from perfmodel.equations.smooth import smooth_max

#: Exponent for HBM beside the compute units: they overlap well, but not fully.
HBM_EXPONENT = 2.5

#: Exponent for chain beside flow: nearly a plain maximum.
BRANCH_EXPONENT = 8


def lockstep_cycles(residents, steps, step, feed, latency, stages, store, start, fill_share):
    r"""Cycles until all residents of a compute unit are done, in lock-step [clk].

    .. math:: \mathrm{lock}(r) = \lambda + \phi \min(I, s - 1)\,\mathrm{feed}
              + I\,\mathrm{step}(r) + r\,\mathrm{store} + \epsilon

    Parameters
    ----------
    residents : array_like
    steps : array_like
        Steps of the main loop.
    step, feed, latency, store, start : array_like
        Of one workgroup: a step with r residents, its operands, a load, the epilogue, and what is
        spent once [clk].
    stages : array_like of int
    fill_share : array_like
        Share of filling the pipeline that is exposed.

    Examples
    --------
    >>> float(lockstep_cycles(2, 10, 300.0, 100.0, 400.0, 3, 50.0, 1000.0, 0.5))
    4600.0
    """
    fill = fill_share * np.minimum(steps, np.asarray(stages, float) - 1.0) * feed
    return latency + fill + steps * step + residents * store + start


def interleaved_cycles(steps, core, store, exclusive_start):
    r"""Cycles of a compute unit that one workgroup uses up when residents interleave [clk].

    .. math:: \theta = I\,\mathrm{core} + \mathrm{store} + \epsilon_w

    Parameters
    ----------
    steps, core, store : array_like
        Steps; cycles of one step's core and of the epilogue [clk].
    exclusive_start : array_like
        The part of the start that no other workgroup can use [clk].

    Examples
    --------
    >>> interleaved_cycles(10, 200.0, 50.0, 0.0)
    2050.0
    """
    return steps * core + store + exclusive_start


def workgroup_cycles(residents, lock, lock_alone, interleaved, degree, shuffle_exponent):
    r"""Cycles until all residents of a compute unit are done [clk].

    .. math:: t(r) = v + c^{-p} \max(\mathrm{lock}(r) - v, 0), \qquad
              v = \max(\mathrm{lock}(1), r \theta)

    Parameters
    ----------
    residents : array_like
    lock, lock_alone : array_like
        `lockstep_cycles` of r residents and of one [clk].
    interleaved : array_like
        `interleaved_cycles` [clk].
    degree : array_like
        Branches running at the same time.
    shuffle_exponent : array_like
        How fast branches lose lock-step.

    Examples
    --------
    One branch: lock-step. Sixteen: half-way to interleaved.

    >>> [float(workgroup_cycles(2, 4600.0, 3000.0, 2050.0, c, 0.25)) for c in (1, 16)]
    [4600.0, 4350.0]
    """
    best = np.maximum(lock_alone, residents * interleaved)
    in_step = np.asarray(degree, float) ** -shuffle_exponent
    return best + in_step * np.maximum(lock - best, 0.0)


def mean_residents(workgroups, compute_units, occupancy, overlap, fullest_share):
    r"""Residents that rule a branch's pace when several branches share the chip.

    .. math:: x = \min(\max(\beta (\bar x + \kappa (\lceil \bar x \rceil - \bar x)), 1), o),
              \qquad \bar x = B / S

    Parameters
    ----------
    workgroups, compute_units, occupancy : array_like
        Of all branches; as in `waves.waves`.
    overlap : array_like
        `overlap_share`: late branches thin out the residents.
    fullest_share : array_like
        How much the fullest compute unit rules a chip that is partly filled.

    Examples
    --------
    >>> float(mean_residents(198, 132, 4, 1.0, 0.5))
    1.75
    """
    mean = np.asarray(workgroups, float) / compute_units
    fullest = mean + fullest_share * (np.ceil(mean) - mean)
    return np.clip(overlap * fullest, 1.0, occupancy)


def overlap_share(rounds, alone_seconds, start_seconds, stagger_share):
    r"""Share of its life in which a branch overlaps the others.

    .. math:: \beta = \frac{R t_0}{R t_0 + \sigma h}

    Examples
    --------
    >>> overlap_share(3, 10e-6, 10e-6, 1.0)
    0.75
    """
    return rounds * alone_seconds / (rounds * alone_seconds + stagger_share * start_seconds)


def drained_seconds(launch_gap, whole_waves, wave_seconds, last_seconds):
    r"""Time of one launch of all branches that drains before the next one starts [s].

    .. math:: D = g + n\,t(o) + t(r_\mathrm{last})

    Parameters
    ----------
    launch_gap : array_like
        From the end of one launch to the start of the next [s].
    whole_waves, wave_seconds : array_like
        How many, and the time of one at full residency [s].
    last_seconds : array_like
        Time of the partial wave at its own residency [s].

    Examples
    --------
    >>> round(float(drained_seconds(1e-6, 2.0, 4e-6, 3e-6)) * 1e6, 6)
    12.0
    """
    return launch_gap + whole_waves * wave_seconds + last_seconds


def single_branch_seconds(drained, hbm_seconds):
    r"""Time of a launch on a single branch, where each drains before the next [s].

    .. math:: V_{2.5}(D, H)

    Parameters
    ----------
    drained, hbm_seconds : array_like
        `drained_seconds`, and the time of the HBM [s].

    Examples
    --------
    >>> round(float(single_branch_seconds(12e-6, 0.0)) * 1e6, 6)
    12.0
    """
    return smooth_max(HBM_EXPONENT, drained, hbm_seconds)


def chain_seconds(rounds, launch_gap, waves_alone, pace_seconds):
    r"""Time of one branch: its launches are serial [s].

    .. math:: R\,(g + \max(1, \lceil W_1 \rceil)\,t(x'))

    Parameters
    ----------
    rounds : array_like
        Launches back to back on each branch.
    launch_gap : array_like
        [s]
    waves_alone : array_like
        Waves that one launch would need if it had the chip to itself.
    pace_seconds : array_like
        Time of a wave with the residents met on average [s].

    Examples
    --------
    >>> round(float(chain_seconds(3, 1e-6, 0.4, 5e-6)) * 1e6, 6)
    18.0
    """
    return rounds * (launch_gap + np.maximum(1.0, np.ceil(waves_alone)) * pace_seconds)


def flow_seconds(rounds, waves, wave_seconds, launch_gap, degree, tail_share, drained):
    r"""Time of all branches' workgroups flowing through the chip [s].

    .. math:: \min\left(R W t(o) + \tau [W > 1]\,t(o) + R g \max(0, 1 - W + W / c),\; R D\right)

    Rounds of different branches overlap, so the last wave of a launch is exposed only once, at the
    end of all. A launch gap shows as far as the other branches cannot fill the chip. Overlapping
    rounds are never slower than rounds that drain, and a single round is one that drains.

    Parameters
    ----------
    rounds, waves, degree : array_like
        Launches on each branch, waves of one round of all branches, branches.
    wave_seconds, launch_gap : array_like
        [s]
    tail_share : array_like
        Exposed part of the last wave.
    drained : array_like
        `drained_seconds` of a round [s].

    Examples
    --------
    >>> round(float(flow_seconds(3, 2.0, 5e-6, 1e-6, 4, 0.5, 12e-6)) * 1e6, 6)
    32.5
    """
    tail = tail_share * (waves > 1.0)
    gaps = np.maximum(0.0, 1.0 - waves + waves / degree)
    overlapped = (rounds * waves + tail) * wave_seconds + rounds * launch_gap * gaps
    return np.minimum(overlapped, rounds * drained)


def branches_seconds(chain, flow, start_seconds, exposed_start_share, hbm_seconds):
    r"""Time until all branches have ended [s].

    .. math:: V_8\left(V_{2.5}(\mathrm{chain}, H) + h,\; V_{2.5}(\mathrm{flow}, H) + \rho h\right)

    A chain that starts late ends late. A chip that is full meanwhile loses only part of the start.

    Parameters
    ----------
    chain, flow, start_seconds, hbm_seconds : array_like
        [s]
    exposed_start_share : array_like
        Part of the start that a full chip does not hide.

    Examples
    --------
    >>> round(float(branches_seconds(30e-6, 10e-6, 5e-6, 0.3, 0.0)) * 1e6, 3)
    35.001
    """
    late = smooth_max(HBM_EXPONENT, chain, hbm_seconds) + start_seconds
    full = smooth_max(HBM_EXPONENT, flow, hbm_seconds) + exposed_start_share * start_seconds
    return smooth_max(BRANCH_EXPONENT, late, full)


def mixed_seconds(busy, carveouts, alone, shared, graph_start, member_start, hbm_seconds):
    r"""Time of different GEMMs, one launch on a branch each, until all have ended [s].

    .. math:: V_{2.5}\left(\sum_i E_i + \sum_v \max_{i \in v}(T_i - E_i),\; H\right)
              + f + s (n - 1)

    All workgroups flow through the chip, which takes the sum of the :math:`E_i`; what a member
    spends beyond its share of the flow (latency, tail) shows only for the worst. Kernels whose
    shared-memory carve-outs :math:`v` differ never share a compute unit, so there it shows once
    for each carve-out. Members that fit side by side do not meet: then :math:`\max_i T_i`.

    Parameters
    ----------
    busy : array_like, shape (member, ...)
        Time of the whole chip that a member's workgroups take up, :math:`E_i` [s].
    carveouts : array_like, shape (member, ...)
        Carve-out under which each kernel runs [B].
    alone : array_like, shape (member, ...)
        Isolated time without what launching costs, :math:`T_i` [s].
    shared : array_like of bool
        Whether the members need more compute units than there are.
    graph_start, member_start, hbm_seconds : array_like
        What the first launch costs, what each further branch adds, and time of the HBM [s].

    Examples
    --------
    Two members of 10 us, each filling the chip for 6: the second hides 4 of its 10.

    >>> time = mixed_seconds(np.array([6e-6, 6e-6]), np.array([1, 1]), np.array([1e-5, 1e-5]),
    ...                      True, 0.0, 0.0, 0.0)
    >>> round(float(time) * 1e6, 6)
    16.0
    """
    busy, alone = np.minimum(busy, alone), np.asarray(alone, float)
    beyond = alone - busy
    worst = np.zeros_like(beyond[0])
    for carveout in np.unique(carveouts):
        worst = worst + np.where(carveouts == carveout, beyond, 0.0).max(axis=0)
    together = np.where(shared, busy.sum(axis=0) + worst, alone.max(axis=0))
    starts = graph_start + member_start * (len(busy) - 1)
    return smooth_max(HBM_EXPONENT, together, hbm_seconds) + starts
