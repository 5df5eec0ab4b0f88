"""The iterate of the interior point for interval protection, and its Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array

from cellguard._core.interior import longest_step
from cellguard._engine.space.echelon_form import find_anchors
from cellguard._types import FloatArray, IntArray
from cellguard.methods.intervals.narrowest.newton_copies import factor_robustly, make_newton_copies
from cellguard.methods.intervals.requests import WidthRequests

__all__ = ["NewtonState", "WidthProgram"]

_CORRECTORS = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class WidthProgram:
    """Which requests the widths must hide, at what cost, and how far widths and movements may go."""

    relations: csr_array
    """Independent relations between the cells."""
    basis: csr_array
    """Basis of their null space."""
    weight: FloatArray
    requests: WidthRequests
    tied: bool
    """One width for both sides (symmetric levels, limits that do not bind)."""
    most_upper: FloatArray
    """Limits of the widths; infinite where there is none, 0 where a side must stay closed."""
    most_lower: FloatArray
    hard_upper: FloatArray | None = None
    """Limits of each request's own movement, requests by cells (what its attacker knew before)."""
    hard_lower: FloatArray | None = None


class _Pair:
    """A slack and its multiplier, ``slack * dual -> mu``."""

    def __init__(self, slack: FloatArray, dual: FloatArray) -> None:
        self.slack, self.dual = slack, dual
        self.d_slack, self.d_dual = np.zeros_like(slack), np.zeros_like(dual)
        self.correction: FloatArray | float = 0.0
        self.error: FloatArray = np.zeros_like(slack)
        """By how much the slack does not yet equal its definition."""
        self.target: FloatArray = np.zeros_like(slack)
        """Right-hand side of the linearised complementarity, divided by the slack."""

    @property
    def theta(self) -> FloatArray:
        return self.dual / self.slack

    def set_targets(self, stands_for: FloatArray, mu: float) -> None:
        """Record the residuals: of the slack to its definition, and of the product to mu."""
        self.error = stands_for - self.slack
        self.target = np.asarray((mu - self.slack * self.dual - self.correction) / self.slack)

    @property
    def push(self) -> FloatArray:
        """Return the dual if the defining expression of the slack does not change."""
        return self.dual + self.target - self.theta * self.error

    def follow(self, change: FloatArray) -> None:
        """Set the direction that goes with a change of the slack's defining expression."""
        self.d_slack = change + self.error
        self.d_dual = self.target - self.theta * self.d_slack

    def compute_longest_step(self) -> tuple[float, float]:
        """Return the longest steps, up to 1, that keep slack and dual positive."""
        primal = longest_step(self.slack.ravel(), self.d_slack.ravel())
        return min(1.0, primal), min(1.0, longest_step(self.dual.ravel(), self.d_dual.ravel()))

    def compute_product(self, primal: float = 0.0, dual: float = 0.0) -> float:
        return float(((self.slack + primal * self.d_slack) * (self.dual + dual * self.d_dual)).sum())

    def measure_outliers(self, primal: float, dual: float, mu: float) -> FloatArray:
        """Return how far the products of a longer step would leave a neighbourhood of the central path."""
        product = (self.slack + primal * self.d_slack) * (self.dual + dual * self.d_dual)
        return np.asarray(np.maximum(np.clip(product, 0.1 * mu, 10.0 * mu) - product, -10.0 * mu))

    def move(self, primal: float, dual: float) -> None:
        self.slack = self.slack + primal * self.d_slack
        self.dual = self.dual + dual * self.d_dual


class NewtonState:
    """The iterate and its Newton steps. Rows of K x C arrays are requests, columns are cells."""

    def __init__(self, program: WidthProgram) -> None:
        requests, tied = program.requests, program.tied
        self.scale = float(np.median(requests.level))
        self.weight_scale = float(np.median(program.weight))
        self.w = program.weight / self.weight_scale
        self.level, self.base = requests.level / self.scale, requests.base / self.scale
        one, other, slide = requests.list_divided()
        self.slides = one, other, slide / self.scale
        self.cell, self.sign = requests.cell, requests.sign
        self.tied = tied
        self.basis = program.basis
        self.N = self.basis.toarray()
        self.copies = make_newton_copies(program.relations, self.basis)
        self.rows = np.arange(len(requests))
        self.parameters = find_anchors(self.basis)

        most = (
            [np.minimum(program.most_upper, program.most_lower)] if tied else [program.most_upper, program.most_lower]
        )
        limits = [np.minimum(limit / self.scale, 1e12) for limit in most]
        self.z = self._start_movements(limits)
        self.sides: list[FloatArray] = self._start_widths(self.z, limits)
        width = self.sides[0] if tied else np.maximum(*self.sides)
        # a side that must stay closed has no variable: its width stays 0
        self.open = [limit > 0 for limit in limits]
        for side, is_open in enumerate(self.open):
            self.sides[side][~is_open] = 0.0
        self.dz: FloatArray = np.zeros_like(self.z)
        self.dx: list[FloatArray] = []
        self._start_multipliers(width, limits, (program.hard_upper, program.hard_lower))

    def _start_multipliers(
        self, width: FloatArray, limits: list[FloatArray], hard: tuple[FloatArray | None, FloatArray | None]
    ) -> None:
        """Return large, equal multipliers: from below the central path the first steps would be short."""
        z, tied = self.z, self.tied
        K, C = z.shape
        up = np.full((K, C), (5.0 if tied else 10.0) * float(self.w.mean()) / K)
        thin = 0.3 * width
        self.p = _Pair(np.maximum(self.upper - z, thin), up)
        self.q = _Pair(np.maximum(self.lower + z, thin), up.copy())
        self.g = _Pair(self.sign * z[self.rows, self.cell] - self.level, np.full(K, float(self.w.mean())))
        mu = self.p.compute_product() / self.p.slack.size  # equal products: a central start
        self.g.dual = mu / self.g.slack
        self.caps: list[tuple[int, IntArray, FloatArray, _Pair]] = []
        for side, limit in enumerate(limits):
            at = np.flatnonzero((limit < 1e11) & self.open[side])
            slack = np.maximum(limit[at] - self.sides[side][at], thin[at])
            self.caps.append((side, at, limit[at], _Pair(slack, mu / slack)))
        # no width is negative; one that serves both sides cannot be
        above = [] if tied else [np.maximum(x, 0.1 * width) for x in self.sides]
        self.floors = [_Pair(slack, mu / slack) for slack in above]
        self.hard: list[tuple[float, IntArray, IntArray, FloatArray, _Pair]] = []
        for direction, given in zip((1.0, -1.0), hard, strict=True):
            if given is not None:
                k, i = np.nonzero(np.isfinite(given))
                limit = given[k, i] / self.scale
                slack = np.maximum(limit - direction * z[k, i], 0.1 * width[i])
                self.hard.append((direction, k, i, limit, _Pair(slack, mu / slack)))

    def _start_widths(self, z: FloatArray, limits: list[FloatArray]) -> list[FloatArray]:
        """Return widths with some slack around the movements, at most half way to the limit."""
        above, below = np.maximum(z.max(axis=0), 0.0), np.maximum(-z.min(axis=0), 0.0)
        out = []
        reaches = [np.maximum(above, below)] if self.tied else [above, below]
        for limit, reach in zip(limits, reaches, strict=True):
            width = 1.2 * reach + 0.05 * reach.mean()
            out.append(np.where(reach < limit, np.minimum(width, (reach + limit) / 2), width))
        return out

    @property
    def upper(self) -> FloatArray:
        """The upper sides of all copies."""
        return self.sides[0]

    @property
    def lower(self) -> FloatArray:
        """The lower sides; the same as the upper ones where both are tied."""
        return self.sides[-1]

    def _start_movements(self, limits: list[FloatArray]) -> FloatArray:
        """Return short movements for the requests, scaled past their levels.

        They are short in the weights and in the slack of each cell, so that limits are rarely exceeded.
        """
        narrow = np.minimum(limits[0], limits[-1])
        D = self.w * np.maximum(1.0, np.where(narrow > 0, narrow, 1e-3) ** -2)
        scaled = self.basis.T.multiply(D[None, :]) @ self.basis
        gram = cho_factor(scaled.toarray() + 1e-12 * np.eye(self.basis.shape[1]))
        z = (self.N @ cho_solve(gram, self.N[self.cell].T)).T
        own = z[self.rows, self.cell]
        z *= (1.3 * self.sign * self.level / own)[:, None]
        return np.ascontiguousarray(z)

    # ------------------------------------------------------------------ bounds

    def compute_feasible_widths(self) -> tuple[float, FloatArray, FloatArray] | None:
        """Scale every movement to its level: the widths they span are a solution, if within the limits."""
        own = self.sign * self.z[self.rows, self.cell]
        if not (own > 0).all():
            return None
        z = self.z * (self.level / own)[:, None]
        upper, lower = np.maximum(z.max(axis=0), 0.0), np.maximum(-z.min(axis=0), 0.0)
        if self.tied:
            upper = lower = np.maximum(upper, lower)
        slack = 1e-9
        for side, x in enumerate((upper, lower)[: len(self.sides)]):
            if (x[~self.open[side]] > slack).any():
                return None
        for side, at, limit, _ in self.caps:
            if ((upper, lower)[side][at] > limit * (1 + slack)).any():
                return None
        for direction, k, i, limit, _ in self.hard:
            if (direction * z[k, i] > limit * (1 + slack) + slack).any():
                return None
        objective = float(self.w @ (upper + lower)) * self.scale * self.weight_scale
        if not np.isfinite(objective):
            return None
        return objective, upper * self.scale, lower * self.scale

    def lower_bound(self) -> float:
        """Move the multipliers to exact dual feasibility; return the bound that they then prove.

        The dual asks ``N'(lambda - mu) = gamma s n_c`` for every request and ``sum lambda <= w`` (plus the
        multiplier of the limit). Some cell moves with each parameter alone, so changing the
        multipliers there repairs the equations exactly; scaling, or the limits, then repair the sums.
        """
        lam, mu, gamma = self.p.dual.copy(), self.q.dual.copy(), self.g.dual
        net = lam - mu + self._build_hard_net()
        error = net @ self.basis - (gamma * self.sign)[:, None] * self.N[self.cell]
        at, entry = self.parameters
        lam[:, at] += np.maximum(-error / entry, 0.0)
        mu[:, at] += np.maximum(error / entry, 0.0)
        # the common part of lambda and mu proves nothing
        common = np.minimum(lam, mu)
        lam -= common
        mu -= common
        price = float(gamma @ self.base)
        one, other, slide = self.slides
        price += float(np.minimum(gamma[one], gamma[other]) @ slide)
        for _, _, _, limit, pair in self.hard:
            price -= float(pair.dual @ limit)
        if self.tied:
            used, weights = [(lam + mu).sum(axis=0)], [2.0 * self.w]
        else:
            used, weights = [lam.sum(axis=0), mu.sum(axis=0)], [self.w, self.w]
        absorbed = [np.zeros_like(weight) for weight in weights]
        limits = [np.full_like(weight, np.inf) for weight in weights]
        for side, capped, limit, pair in self.caps:
            absorbed[side][capped], limits[side][capped] = pair.dual, limit
            price -= float(pair.dual @ limit)
        price = max(self._scale_multipliers(price, weights, used, absorbed, rest) for rest in (limits, None))
        if not np.isfinite(price):
            return 0.0
        return max(0.0, price) * self.scale * self.weight_scale

    def _scale_multipliers(
        self,
        price: float,
        weights: list[FloatArray],
        used: list[FloatArray],
        absorbed: list[FloatArray],
        limits: list[FloatArray] | None,
    ) -> float:
        """Return the bound that multipliers prove once feasible: scaled down, or absorbed by limits that are finite.

        Scaling by f leaves ``f use <= w + f absorbed``: what the limits absorb is scaled as well.
        """
        factor = 1.0
        for side, (weight, use, taken, is_open) in enumerate(zip(weights, used, absorbed, self.open, strict=True)):
            over = is_open & ~(use <= weight + taken)  # NaN counts as over, and proves nothing
            if limits is not None:
                pays = over & np.isfinite(limits[side])
                price -= float((use - weight - taken)[pays] @ limits[side][pays])
                over &= ~pays
            if over.any():
                factor = min(factor, float((weight[over] / (use - taken)[over]).min()))
        return price * factor if np.isfinite(price * factor) else 0.0

    def _build_hard_net(self) -> Any:
        net: Any = 0.0
        for direction, k, i, _, pair in self.hard:
            part = np.zeros_like(self.z)
            part[k, i] = direction * pair.dual
            net = net + part
        return net

    # ------------------------------------------------------------------ Newton

    def take_step(self) -> float:
        """Take one predictor-corrector step with a few centrality correctors; return its length.

        Factoring costs far more than solving here, so further correctors (Gondzio 1996) are tried as
        long as each lengthens the step.
        """
        pairs = self._list_pairs()
        count = sum(pair.slack.size for pair in pairs)
        mu = sum(pair.compute_product() for pair in pairs) / count
        system = self._factor_systems()
        for pair in pairs:
            pair.correction = 0.0
        self._compute_direction(system, 0.0)
        primal, dual = self._compute_longest_step(pairs)
        affine = sum(pair.compute_product(primal, dual) for pair in pairs) / count
        centre = mu * (affine / mu) ** 3
        for pair in pairs:
            pair.correction = pair.d_slack * pair.d_dual
        self._compute_direction(system, centre)
        primal, dual = self._compute_longest_step(pairs)
        for _ in range(_CORRECTORS):
            kept = [(pair.correction, pair.d_slack, pair.d_dual) for pair in pairs], self.dz, self.dx
            for pair in pairs:
                pair.correction = pair.correction - pair.measure_outliers(
                    min(1.0, primal + 0.2), min(1.0, dual + 0.2), centre
                )
            self._compute_direction(system, centre)
            longer = self._compute_longest_step(pairs)
            if min(longer) < min(primal, dual) + 0.02:
                for pair, state in zip(pairs, kept[0], strict=True):
                    pair.correction, pair.d_slack, pair.d_dual = state
                self.dz, self.dx = kept[1], kept[2]
                break
            primal, dual = longer
        primal, dual = 0.9 * primal, 0.9 * dual  # closer to the boundary, the next steps would be shorter
        for pair in pairs:
            pair.move(primal, dual)
        self.z += primal * self.dz
        for side, dx in enumerate(self.dx):
            self.sides[side] = self.sides[side] + primal * dx
        return min(primal, dual)

    def _list_pairs(self) -> list[_Pair]:
        return [self.p, self.q, self.g, *(cap[-1] for cap in self.caps), *self.floors, *(h[-1] for h in self.hard)]

    @staticmethod
    def _compute_longest_step(pairs: list[_Pair]) -> tuple[float, float]:
        primal, dual = zip(*(pair.compute_longest_step() for pair in pairs), strict=True)
        return min(primal), min(dual)

    def _factor_systems(self) -> tuple[FloatArray, bool]:
        """Factor each request's copy of the table, and the dense system in the widths that remains."""
        tp, tq = self.p.theta, self.q.theta
        extra = np.zeros_like(tp)
        extra[self.rows, self.cell] += self.g.theta
        for _, k, i, _, pair in self.hard:
            extra[k, i] += pair.theta
        S = self.copies.factor(tp, tq, extra, self.tied)
        C = tp.shape[1]
        for side, at, _, pair in self.caps:
            S[side * C + at, side * C + at] += pair.theta
        for side, pair in enumerate(self.floors):
            every = side * C + np.arange(C)
            S[every, every] += pair.theta
        closed = np.flatnonzero(~np.concatenate(self.open))
        S[closed, :], S[:, closed] = 0.0, 0.0
        S[closed, closed] = 1.0
        return factor_robustly(S)

    def _compute_direction(self, system: tuple[FloatArray, bool], mu: float) -> None:
        p, q, g = self.p, self.q, self.g
        own = self.sign * self.z[self.rows, self.cell]
        p.set_targets(self.upper - self.z, mu)
        q.set_targets(self.lower + self.z, mu)
        g.set_targets(own - self.level, mu)
        for side, at, limit, pair in self.caps:
            pair.set_targets(limit - self.sides[side][at], mu)
        for side, pair in enumerate(self.floors):
            pair.set_targets(np.where(self.open[side], self.sides[side], pair.slack), mu)
        for direction, k, i, limit, pair in self.hard:
            pair.set_targets(limit - direction * self.z[k, i], mu)
        tp, tq = p.theta, q.theta
        b = -(p.dual - q.dual) - self._build_hard_net() - (p.target - tp * p.error) + (q.target - tq * q.error)
        b[self.rows, self.cell] += self.sign * g.push
        for direction, k, i, _, pair in self.hard:
            b[k, i] -= direction * (pair.target - pair.theta * pair.error)
        base = self.copies.project(b)
        up, down = (p.push + tp * base).sum(axis=0) - self.w, (q.push - tq * base).sum(axis=0) - self.w
        dx = cho_solve(system, self._compute_width_rhs(up, down), check_finite=False)
        C = b.shape[1]
        self.dx = [dx[:C]] if self.tied else [dx[:C], dx[C:]]
        self.dz = base + self.copies.project(tp * self.dx[0] - tq * self.dx[-1])
        p.follow(self.dx[0] - self.dz)
        q.follow(self.dx[-1] + self.dz)
        g.follow(self.sign * self.dz[self.rows, self.cell])
        for side, at, _, pair in self.caps:
            pair.follow(-self.dx[side][at])
        for side, pair in enumerate(self.floors):
            pair.follow(self.dx[side])
        for direction, k, i, _, pair in self.hard:
            pair.follow(-direction * self.dz[k, i])

    def _compute_width_rhs(self, up: FloatArray, down: FloatArray) -> FloatArray:
        out = [up + down] if self.tied else [up, down]
        for side, at, _, pair in self.caps:
            out[side][at] -= pair.push
        for side, pair in enumerate(self.floors):
            out[side] += pair.push
        for side, is_open in enumerate(self.open):
            out[side][~is_open] = 0.0
        return np.concatenate(out)
