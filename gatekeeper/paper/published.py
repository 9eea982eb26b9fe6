"""All figures that the paper prints, as data; none of them is ours.

Hit rates, audit rates and error rates lie in [0, 1]; gains are in percentage points (pp); β is the
share of the full verification cost. Names of settings and policies are the project's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gatekeeper.stats.interval import Interval

__all__ = [
    "BETAS",
    "CONFORMAL",
    "CRITERIA",
    "FACTS",
    "GATE_OPEN",
    "HGA",
    "HIT_RATE",
    "HOMOGENEOUS",
    "MAIN_BETAS",
    "MAIN_GAIN",
    "MAIN_ORACLE",
    "MEMORY",
    "PARTIAL_FEEDBACK_PP",
    "POLICIES",
    "ROUTING",
    "SETTINGS",
    "SIGNAL_SWEEP_CROSSING",
    "STRATA",
    "STRATA_SWEEP",
    "Facts",
    "Grid",
]

Grid = Mapping[float, Mapping[str, float]]  # β to column name to figure

SETTINGS = ("mbpp-qwen3", "mbpp-llama3", "mbpp-gpt4o-mini", "math-qwen3", "math-llama3")
POLICIES = ("random", "threshold", "cst", "cst-memory", "mp-adapt", "mp-strat", "oracle")
BETAS = (0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.40, 0.50)
MAIN_BETAS = (0.10, 0.20, 0.30, 0.50)


def _rows(text: str, columns: tuple[str, ...]) -> Grid:
    """Lines of "β in percent, one figure per column"; "-" for a figure the paper leaves out."""
    grid = {}
    for line in text.strip().splitlines():
        beta, *figures = line.split()
        cells = zip(columns, figures, strict=True)
        grid[int(beta) / 100] = {name: float(f) for name, f in cells if f != "-"}
    return grid


@dataclass(frozen=True, slots=True)
class Facts:
    """The paper's figures of a setting's data set; None where it gives none."""

    n: int  # candidates (Section "Setup")
    error_rate: float
    rho: float  # corr(s, y) over the whole set (Table "main")
    # Section "Cross-Task and Cross-Model Analysis": H = Var_k(ρ_k), and corr(cost, error)
    dispersion: float | None = None
    cost_error: float | None = None
    strata_error_rate: tuple[float, ...] | None = None  # Table "cst_quartile"
    strata_rho: tuple[float | None, ...] | None = None  # Sections "signal_sweep", "gpt4omini"


FACTS: Mapping[str, Facts] = {
    "mbpp-qwen3": Facts(
        n=500,
        error_rate=0.558,
        rho=0.178,
        dispersion=0.0035,
        strata_error_rate=(0.423, 0.500, 0.581, 0.714),
        strata_rho=(None, None, 0.256, 0.157),
    ),
    "mbpp-llama3": Facts(n=500, error_rate=0.644, rho=0.301, dispersion=0.0065),
    "mbpp-gpt4o-mini": Facts(
        n=500,
        error_rate=0.528,
        rho=0.174,
        dispersion=0.0025,
        strata_rho=(None, None, None, 0.059),
    ),
    "math-qwen3": Facts(n=5000, error_rate=0.247, rho=0.153, cost_error=0.193),
    "math-llama3": Facts(n=5000, error_rate=0.613, rho=0.201, cost_error=0.309),
}
COST_CORRELATION = 0.3  # of ĉ and c, all settings (Section "Costs, Noise, and Baselines")

# Tables "cst_main", "llama3_main", "gpt4omini_main", "math_qwen3", "math_llama3".
HIT_RATE: Mapping[str, Grid] = {
    "mbpp-qwen3": _rows(
        """
         5  .549 .616 .679 .666 .601 .642 1.00
        10  .551 .636 .671 .622 .597 .656 1.00
        15  .562 .620 .651 .651 .622 .621 1.00
        20  .546 .610 .661 .647 .619 .634 1.00
        25  .548 .610 .662 .651 .621 .616 1.00
        30  .550 .605 .661 .638 .616 .599 1.00
        40  .564 .591 .645 .625 .586 .608 1.00
        50  .562 .588 .631 .615 .569 .600 1.00
        """,
        POLICIES,
    ),
    "mbpp-llama3": _rows(
        """
         5  .624 .828 .898 .882 .749 .875 1.000
        10  .630 .712 .882 .844 .689 .837 1.000
        15  .629 .692 .855 .822 .698 .839 1.000
        20  .638 .686 .837 .795 .693 .794 1.000
        25  .643 .698 .821 .781 .702 .784 .989
        30  .642 .693 .803 .755 .692 .763 .995
        40  .650 .683 .760 .716 .677 .735 .996
        50  .649 .675 .728 .693 .673 .704 1.000
        """,
        POLICIES,
    ),
    "mbpp-gpt4o-mini": _rows(
        """
         5  .535 .426 .630 .604 .455 .595 .977
        10  .513 .511 .592 .592 .524 .552 .988
        15  .526 .535 .603 .608 .549 .560 .991
        20  .527 .545 .610 .610 .553 .579 .993
        25  .533 .556 .610 .607 .557 .582 .994
        30  .533 .547 .614 .620 .563 .578 .995
        40  .540 .562 .612 .624 .578 .567 .991
        50  .539 .578 .612 .601 .580 .576 .996
        """,
        POLICIES,
    ),
    "math-qwen3": _rows(
        """
         5  .250 .556 .329 .321 .395 .306 1.000
        10  .242 .524 .322 .308 .356 .288 1.000
        15  .244 .443 .314 .308 .330 .290 1.000
        20  .246 .384 .308 .303 .310 .285 .997
        25  .247 .348 .303 .301 .294 .271 .997
        30  .248 .320 .301 .296 .284 .265 .938
        40  .247 .285 .294 .284 .263 .258 .650
        50  .248 .264 .283 .272 .250 .252 .526
        """,
        POLICIES,
    ),
    "math-llama3": _rows(
        """
         5  .611 .870 .828 .771 .777 .759 1.000
        10  .605 .848 .799 .744 .734 .730 .999
        15  .603 .810 .776 .727 .698 .710 .999
        20  .608 .774 .758 .718 .681 .699 1.000
        25  .611 .743 .745 .707 .667 .684 .999
        30  .615 .719 .734 .698 .653 .671 .999
        40  .615 .682 .715 .690 .629 .650 1.000
        50  .616 .655 .693 .668 .615 .632 1.000
        """,
        POLICIES,
    ),
}


MAIN_GAIN: Mapping[str, Mapping[float, Interval]] = {
    "mbpp-qwen3": {
        0.10: Interval(+3.4, -0.2, +7.0),
        0.20: Interval(+5.1, +3.6, +6.6),
        0.30: Interval(+5.6, +4.3, +7.0),
        0.50: Interval(+4.3, +3.3, +5.3),
    },
    "mbpp-llama3": {
        0.10: Interval(+17.0, +12.8, +21.1),
        0.20: Interval(+15.1, +13.2, +17.0),
        0.30: Interval(+11.0, +9.2, +12.9),
        0.50: Interval(+5.3, +4.1, +6.5),
    },
    "mbpp-gpt4o-mini": {
        0.10: Interval(+8.1, +4.5, +11.7),
        0.20: Interval(+6.5, +4.3, +8.7),
        0.30: Interval(+6.7, +5.6, +7.8),
        0.50: Interval(+3.4, +2.5, +4.3),
    },
    "math-qwen3": {
        0.10: Interval(-20.2, -22.3, -18.1),
        0.20: Interval(-7.6, -8.4, -6.8),
        0.30: Interval(-1.9, -2.4, -1.4),
        0.50: Interval(+2.0, +1.6, +2.3),
    },
    "math-llama3": {
        0.10: Interval(-4.9, -6.7, -3.2),
        0.20: Interval(-1.6, -2.4, -0.8),
        0.30: Interval(+1.5, +1.1, +2.0),
        0.50: Interval(+3.7, +3.4, +4.1),
    },
}
MAIN_ORACLE: Mapping[str, tuple[float, ...]] = {
    "mbpp-qwen3": (1.00, 1.00, 1.00, 1.00),
    "mbpp-llama3": (1.00, 1.00, 1.00, 1.00),
    "mbpp-gpt4o-mini": (0.99, 0.99, 1.00, 1.00),
    "math-qwen3": (1.00, 1.00, 0.94, 0.53),
    "math-llama3": (1.00, 1.00, 1.00, 1.00),
}

# Table "homo_hr": MBPP, Qwen3-8B, c ≡ 0.5.
HOMOGENEOUS: Grid = _rows(
    """
     5  .480 .680 .680 .800 .560 .600 1.000
    10  .440 .740 .740 .660 .580 .580 1.000
    20  .480 .650 .650 .650 .590 .610 1.000
    30  .553 .653 .653 .647 .673 .693 1.000
    50  .576 .669 .669 .658 .612 .636 1.000
    """,
    POLICIES,
)

# Table "cst_quartile": MBPP, Qwen3-8B, β = 20 %; strata of cost from cheap to expensive.
STRATA: Mapping[str, tuple[float, ...]] = {
    "audit threshold": (0.306, 0.216, 0.186, 0.151),
    "audit cst": (0.189, 0.209, 0.217, 0.191),
    "hit threshold": (0.412, 0.586, 0.625, 0.947),
    "hit cst": (0.429, 0.571, 0.714, 0.833),
    "error rate": (0.423, 0.500, 0.581, 0.714),
}

# Table "strat_criteria_supp": β = 20 %. Its Threshold and CST are those of no other table.
CRITERIA: Mapping[str, float] = {
    "none": 0.604,
    "random": 0.590,
    "signal": 0.471,
    "cost": 0.644,
    "oracle": 1.000,
}


@dataclass(frozen=True, slots=True)
class Memory:
    """Section "Memory Augmentation Ablation": MBPP, Qwen3-8B, β = 20 %."""

    cst: float = 0.644
    best_weights: tuple[float, float] = (0.1, 0.3)
    best_gain_pp: tuple[float, float] = (1.0, 3.0)
    collapse: float = 0.515  # hit rate at w >= 0.5


MEMORY = Memory()

# Section "Hypothesis tests": partial feedback changes the hit rate by less than this.
PARTIAL_FEEDBACK_PP = 0.5
# Section "Signal strength analysis": MP-Syn is above Threshold from about this ρ on.
SIGNAL_SWEEP_CROSSING = 0.20

# Table "conformal": hit rate of per-stratum split-conformal, and its difference from CST in pp.
CONFORMAL: Mapping[str, Grid] = {
    setting: _rows(text, ("hit", "minus_cst"))
    for setting, text in {
        "mbpp-qwen3": "10 .667 -3.1 \n 20 .626 -1.7 \n 30 .650 -1.9 \n 50 .640 -1.5",
        "mbpp-llama3": "10 .852 -3.1 \n 20 .865 +2.0 \n 30 .797 -2.0 \n 50 .749 +0.7",
        "mbpp-gpt4o-mini": "10 .648 +9.5 \n 20 .644 +2.4 \n 30 .604 -3.2 \n 50 .616 +0.1",
        "math-qwen3": "10 .315 -0.8 \n 20 .309 -1.0 \n 30 .305 +0.8 \n 50 .289 +0.9",
        "math-llama3": "10 .822 +0.5 \n 20 .769 +1.5 \n 30 .741 +0.3 \n 50 .704 +0.5",
    }.items()
}

# Table "k_sweep": CST's hit rate by number of strata K, then by β.
STRATA_SWEEP: Mapping[str, Mapping[int, Mapping[float, float]]] = {
    setting: {
        k: dict(zip((0.05, 0.10, 0.20, 0.30, 0.50), figures, strict=True))
        for k, figures in rows.items()
    }
    for setting, rows in {
        "math-qwen3": {
            1: (0.569, 0.529, 0.384, 0.316, 0.266),
            2: (0.434, 0.427, 0.376, 0.326, 0.286),
            3: (0.380, 0.373, 0.336, 0.327, 0.284),
            4: (0.341, 0.323, 0.317, 0.298, 0.279),
            6: (0.293, 0.306, 0.285, 0.277, 0.269),
            8: (0.295, 0.260, 0.257, 0.259, 0.253),
        },
        "math-llama3": {
            1: (0.869, 0.839, 0.769, 0.718, 0.658),
            2: (0.836, 0.823, 0.789, 0.756, 0.691),
            3: (0.856, 0.794, 0.769, 0.744, 0.694),
            4: (0.823, 0.789, 0.745, 0.736, 0.695),
            6: (0.822, 0.788, 0.731, 0.716, 0.690),
            8: (0.785, 0.751, 0.707, 0.699, 0.670),
        },
    }.items()
}

# Table "hga_gate": β = 20 %.
GATE_OPEN: Mapping[str, bool] = {
    "mbpp-qwen3": True,
    "mbpp-llama3": True,
    "mbpp-gpt4o-mini": True,
    "math-qwen3": False,
    "math-llama3": False,
}

# Table "hga_full": the second half of the stream is evaluated.
HGA: Mapping[str, Grid] = {
    setting: _rows(text, ("threshold", "cst", "hga"))
    for setting, text in {
        "mbpp-qwen3": """
            10 .616 .681 .677
            20 .624 .654 .653
            30 .606 .656 .656
            50 .579 .631 .631
        """,
        "mbpp-llama3": """
            10 .689 .847 .826
            20 .677 .813 .804
            30 .686 .787 .770
            50 .674 .725 .725
        """,
        "mbpp-gpt4o-mini": """
            10 .495 .571 .568
            20 .533 .610 .591
            30 .553 .614 .603
            50 .572 .605 .598
        """,
        "math-qwen3": """
            10 .525 .330 .525
            20 .385 .307 .385
            30 .321 .300 .316
            50 .264 .284 .280
        """,
        "math-llama3": """
            10 .844 .798 .835
            20 .775 .756 .774
            30 .717 .734 .722
            50 .656 .695 .668
        """,
    }.items()
}


@dataclass(frozen=True, slots=True)
class Routing:
    """Table "routing_reanalysis": MBPP, β = 20 %, to GPT-4o-mini where the cheap model is wrong."""

    benefit_rate: (
        float  # share of the examples where the cheap model fails and the expensive one succeeds
    )
    hit_rate: Mapping[str, float]


ROUTING: Mapping[str, Routing] = {
    "mbpp-qwen3": Routing(
        0.096,
        {
            "random": 0.096,
            "threshold": 0.109,
            "mp-adapt": 0.098,
            "mp-strat": 0.100,
            "cst": 0.103,
        },
    ),
    "mbpp-llama3": Routing(
        0.158,
        {
            "random": 0.153,
            "threshold": 0.173,
            "mp-adapt": 0.149,
            "mp-strat": 0.183,
            "cst": 0.180,
        },
    ),
}
