"""What the SIESTA paper (Harun et al., TMLR 2023) printed: every row of every table, for columns beside ours."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FIGURES", "GAINS", "PUBLISHED", "TABLES", "Row", "Table", "find_row", "published"]


@dataclass(frozen=True)
class Table:
    """What holds for all rows of a table.

    Attributes:
        dataset: What was learned.
        k: The accuracies are top-k.
        source: Where it stands.
        order: How the stream came; "offline" where nothing is continual.
        memory_unit: Bytes in one printed unit of M.
        updates_unit: Updates in one printed unit of U.
        trainable: True where P counts what lies above the cut only.
    """

    dataset: str
    k: int
    source: str
    order: str = "class-incremental"
    memory_unit: int = 10**9
    updates_unit: int = 10**6
    trainable: bool = False


TABLES: dict[str, Table] = {
    "tab:no_aug": Table("ImageNet-1K", 5, "Results, no augmentation"),
    "tab:aug": Table("ImageNet-1K", 5, "State-of-the-art comparisons"),
    "tab:places": Table("Places365-LT", 1, "Rehearsal policies; mean and std of 5 orders"),
    "tab:arch": Table("ImageNet-1K", 5, "Architecture comparisons", order="offline", trainable=True),
    "tab:layer_analysis": Table("ImageNet-1K", 5, "MobileNet quantization layer", trainable=True),
    "tab:aug_expts_supp": Table("ImageNet-1K", 5, "Comparison with the offline learner, augmentation"),
    "tab:buffer-size": Table("ImageNet-1K", 5, "Impact of buffer size"),
    "tab:batch_size": Table("ImageNet-1K", 5, "Batch size and training time"),
    "tab:ssl": Table("ImageNet-1K", 1, "SSL pre-training analysis", order="offline"),
    "tab:placesfull": Table("Places365-Standard", 5, "Additional datasets"),
    "tab:cub": Table(
        "CUB-200", 5, "Additional datasets; mean and std of 6 runs", memory_unit=10**6, updates_unit=10**3
    ),
    "text:iid": Table("ImageNet-1K", 5, "Results, no augmentation, text", order="iid"),
    "text:online": Table("ImageNet-1K", 5, "Online comparisons, text: SIESTA's 83.59 minus the stated gaps"),
    "text:buffer": Table("ImageNet-1K", 5, "Additional experiments, text: 130,000 samples stored"),
    "text:time": Table("ImageNet-1K", 5, "Computational efficiency, text"),
    "text:gain": Table("ImageNet-1K", 5, "Sleep analyses, text; mean and std over sleeps"),
}

FIGURES: dict[str, str] = {
    "fig:summary": "accuracy against updates, circles as large as the parameters",
    "subfig:learning_curve": "learning curves on ImageNet-1K, no augmentation",
    "subfig:gflops": "GFLOPS, extrapolated to larger data sets",
    "subfig:sleep_plot3": "before and after each sleep",
    "subfig:sleep_plot4": "length of a sleep",
    "subfig:replay_plot_imagenet": "rehearsal policies on 300 classes of ImageNet",
    "subfig:replay_plot_places": "rehearsal policies on Places365-LT",
    "fig:online": "learning curves of online learners",
}
"""Figures that show measurements; their numbers are printed only where a table or the text repeats them."""


@dataclass(frozen=True)
class Row:
    """One printed row; None where nothing is printed. P is in millions; M and U are in the units of the table.

    Attributes:
        table: A key of `TABLES`.
        method: As printed, with what tells the row from others of its table.
        parameters: P.
        mu: Average accuracy, %.
        alpha: Final accuracy, or the best of an offline learner, %.
        memory: M.
        updates: U.
        gflops: A rate, the higher the better.
        mu_std: After the ±.
        alpha_std: After the ±.
        error: Relative error of the quantiser.
        hours: Training time on an RTX A5000.
        samples: Quantised instances stored.
        gain: What a sleep adds to the accuracy, %.
        gain_std: After the ±.
        printed: False for a row that stands in the source as a comment only.
    """

    table: str
    method: str
    parameters: float | None = None
    mu: float | None = None
    alpha: float | None = None
    memory: float | None = None
    updates: float | None = None
    gflops: float | None = None
    mu_std: float | None = None
    alpha_std: float | None = None
    error: float | None = None
    hours: float | None = None
    samples: int | None = None
    gain: float | None = None
    gain_std: float | None = None
    printed: bool = True


GAINS: dict[int, tuple[float, float]] = {50: (2.29, 0.86), 100: (4.25, 1.38), 150: (6.18, 2.15)}
"""Classes between sleeps -> mean and std of what a sleep adds to top-5 accuracy, m = 1.28 M, no augmentation."""


PUBLISHED: tuple[Row, ...] = (
    # table, method, P, mu, alpha, M, U, GFLOPS
    Row("tab:no_aug", "Offline", 5.48, None, 83.31, 192.87, 768.70),
    Row("tab:no_aug", "SIESTA*", 5.48, None, 84.07, 2.02, 20.50, printed=False),
    Row("tab:no_aug", "DER", 54.80, 81.87, 70.15, 20.99, 12.43, 7944.60),
    Row("tab:no_aug", "ER", 5.48, 76.32, 63.92, 19.59, 11.53, 1294.10),
    Row("tab:no_aug", "REMIND", 5.48, 81.77, 74.31, 2.02, 11.53, 10139.00),
    Row("tab:no_aug", "SIESTA", 5.48, 88.33, 83.59, 2.02, 11.53, 19326.00),
    Row("tab:no_aug", "SIESTA (draft)", 5.48, 87.08, 83.59, 2.02, 11.53, printed=False),
    Row("tab:aug", "End-to-End", 11.68, 72.09, 52.29, 22.32, 93.26),
    Row("tab:aug", "Simple-DER", 28.00, 85.62, 80.76, 22.39, 213.17),
    Row("tab:aug", "iCaRL", 11.68, 63.70, 44.00, 22.32, 79.94),
    Row("tab:aug", "BiC", 11.68, 84.00, 73.20, 22.32, 119.91),
    Row("tab:aug", "WA", 11.68, 86.60, 81.10, 22.32, 133.23),
    Row("tab:aug", "PODNet", 11.68, 81.93, 71.39, 22.32, 226.49),
    Row("tab:aug", "DER without pruning", 116.89, 88.17, 82.86, 22.74, 213.17),
    Row("tab:aug", "DER with pruning", None, 87.08, 81.89, 22.32, 213.17),
    Row("tab:aug", "MEMO", 86.72, 87.15, 80.89, 22.65, 226.49),
    Row("tab:aug", "FOSTER", 11.68, 83.23, 71.85, 22.32, 226.49),
    Row("tab:aug", "DyTox", 11.36, 88.78, 83.91, 22.32, 692.80),
    Row("tab:aug", "ER", 5.48, 82.19, 71.22, 19.59, 58.78),
    Row("tab:aug", "REMIND", 11.68, 83.61, 77.14, 2.05, 58.78),
    Row("tab:aug", "SIESTA (No Aug)", 5.48, 88.33, 83.59, 2.02, 11.53),
    Row("tab:aug", "SIESTA (Aug)", 5.48, 90.67, 87.00, 2.02, 57.60),
    Row("tab:places", "Offline", None, None, 22.49, None, 2.50),
    Row("tab:places", "REMIND", None, 25.98, 17.00, None, 0.28, mu_std=1.10, alpha_std=0.54),
    Row("tab:places", "SIESTA, uniform", None, 29.08, 20.15, None, 0.23, mu_std=1.30, alpha_std=0.41),
    Row("tab:places", "SIESTA", None, 33.35, 24.88, None, 0.23, mu_std=1.22, alpha_std=0.46),
    Row("tab:arch", "ResNet18 (Aug)", 10.08, None, 82.63, error=0.40),
    Row("tab:arch", "MobileNetV3-L (Aug)", 5.36, None, 86.47, error=0.18),
    Row("tab:arch", "ResNet18 (No Aug)", 10.08, None, 79.54, error=0.40),
    Row("tab:arch", "MobileNetV3-L (No Aug)", 5.36, None, 84.57, error=0.18),
    Row("tab:layer_analysis", "SIESTA, layer 3", 5.47, 89.39, 85.18, 32.19, error=0.03),
    Row("tab:layer_analysis", "SIESTA, layer 5", 5.46, 89.16, 84.68, 8.08, error=0.07),
    Row("tab:layer_analysis", "SIESTA, layer 8", 5.36, 88.33, 83.59, 2.05, error=0.18),
    Row("tab:layer_analysis", "SIESTA, layer 14", 4.26, 85.37, 79.69, 0.55, error=0.35),
    Row("tab:aug_expts_supp", "Offline", 5.48, None, 90.74, 192.87, 753.33),
    Row("tab:aug_expts_supp", "DER", 54.80, 82.72, 71.82, 20.99, 58.39),
    Row("tab:aug_expts_supp", "ER", 5.48, 82.19, 71.22, 19.59, 58.78),
    Row("tab:aug_expts_supp", "REMIND", 5.48, 87.67, 82.97, 2.02, 58.78),
    Row("tab:aug_expts_supp", "SIESTA", 5.48, 90.67, 87.00, 2.02, 57.60),
    Row("tab:buffer-size", "SIESTA, 479,665 samples", None, 87.33, 80.57, 0.75, samples=479_665),
    Row("tab:buffer-size", "SIESTA, 959,665 samples", None, 88.30, 83.30, 1.51, samples=959_665),
    Row("tab:buffer-size", "SIESTA, 1,281,167 samples", None, 88.33, 83.59, 2.01, samples=1_281_167),
    Row("tab:batch_size", "SIESTA, batch 32", None, 88.36, 83.53, hours=3.80),
    Row("tab:batch_size", "SIESTA, batch 64", None, 88.33, 83.59, hours=2.39),
    Row("tab:batch_size", "SIESTA, batch 128", None, 88.38, 83.72, hours=2.20),
    Row("tab:batch_size", "SIESTA, batch 256", None, 88.34, 83.61, hours=1.97),
    Row("tab:batch_size", "SIESTA, batch 512", None, 88.29, 83.50, hours=1.89),
    Row("tab:ssl", "Supervised (Upper Bound)", alpha=72.33),
    Row("tab:ssl", "Random Initialization", alpha=67.02),
    Row("tab:ssl", "MIRA", alpha=67.73),
    Row("tab:ssl", "MIRA + Barlow Twins", alpha=63.69),
    Row("tab:ssl", "SEED", alpha=68.78),
    Row("tab:ssl", "SwAV", alpha=69.86),
    Row("tab:ssl", "SwAV + E-SSL", alpha=69.71),
    Row("tab:ssl", "SwAV + SEAL", alpha=69.66),
    Row("tab:placesfull", "Offline", 5.48, None, 79.90, 271.49, 669.08, printed=False),
    Row("tab:placesfull", "ER", 5.48, 75.94, 63.90, 19.59, 7.21),
    Row("tab:placesfull", "REMIND", 5.48, 81.48, 73.52, 2.02, 7.21),
    Row("tab:placesfull", "SIESTA", 5.48, 87.60, 81.07, 2.02, 7.21),
    Row("tab:cub", "Offline", 5.48, None, 84.04, 902.26, 587.41, printed=False),
    Row("tab:cub", "ER", 5.48, 76.30, 74.62, 902.26, 41.96, mu_std=0.73, alpha_std=1.41),
    Row("tab:cub", "REMIND", 5.48, 74.00, 70.76, 31.40, 41.96, mu_std=1.44, alpha_std=1.94),
    Row("tab:cub", "SIESTA", 5.48, 86.51, 83.52, 31.40, 38.40, mu_std=0.18, alpha_std=0.28),
    Row("text:iid", "SIESTA", alpha=83.45),
    Row("text:iid", "ER", alpha=64.92),
    Row("text:iid", "REMIND", alpha=79.52),
    Row("text:online", "SLDA", alpha=55.72),
    Row("text:online", "NCM", alpha=54.61),
    Row("text:buffer", "SIESTA", alpha=70.14, samples=130_000),
    Row("text:buffer", "SIESTA-ER", alpha=71.86, samples=130_000),
    Row("text:time", "REMIND", hours=8.1),
    *(
        Row("text:gain", f"SIESTA, asleep every {classes} classes", gain=gain, gain_std=std)
        for classes, (gain, std) in GAINS.items()
    ),
)


def published(table: str, method: str) -> Row:
    """The row of a method in a table.

    Example:
        >>> published("tab:cub", "SIESTA").alpha
        83.52
    """
    row = find_row(table, method)
    if row is None:
        raise KeyError((table, method))
    return row


def find_row(table: str, method: str) -> Row | None:
    """The same, None where nothing is published."""
    return next((row for row in PUBLISHED if (row.table, row.method) == (table, method)), None)
