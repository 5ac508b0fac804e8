"""The published results of the SIESTA paper (Harun et al., TMLR 2023): every row of every table."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "FIGURES",
    "PUBLISHED_ROWS",
    "SLEEP_GAINS",
    "TABLES",
    "PublishedRow",
    "PublishedTable",
    "find_published_row",
    "published_row",
]


@dataclass(frozen=True)
class PublishedTable:
    """A table of the paper, or a paragraph that states results.

    Attributes:
        dataset: The data set.
        k: The accuracies are top-k.
        source: The section or caption.
        order: The order of the stream; "offline" if nothing is learned continually.
        memory_unit: Bytes per printed unit of M.
        updates_unit: Updates per printed unit of U.
        trainable: Whether P counts only the weights above the cut.
    """

    dataset: str
    k: int
    source: str
    order: str = "class-incremental"
    memory_unit: int = 10**9
    updates_unit: int = 10**6
    trainable: bool = False


TABLES: dict[str, PublishedTable] = {
    "tab:no_aug": PublishedTable("ImageNet-1K", 5, "Results, no augmentation"),
    "tab:aug": PublishedTable("ImageNet-1K", 5, "State-of-the-art comparisons"),
    "tab:places": PublishedTable("Places365-LT", 1, "Rehearsal policies; mean and std of 5 orders"),
    "tab:arch": PublishedTable("ImageNet-1K", 5, "Architecture comparisons", order="offline", trainable=True),
    "tab:layer_analysis": PublishedTable("ImageNet-1K", 5, "MobileNet quantization layer", trainable=True),
    "tab:aug_expts_supp": PublishedTable("ImageNet-1K", 5, "Comparison with the offline learner, augmentation"),
    "tab:buffer-size": PublishedTable("ImageNet-1K", 5, "Impact of buffer size"),
    "tab:batch_size": PublishedTable("ImageNet-1K", 5, "Batch size and training time"),
    "tab:ssl": PublishedTable("ImageNet-1K", 1, "SSL pre-training analysis", order="offline"),
    "tab:placesfull": PublishedTable("Places365-Standard", 5, "Additional datasets"),
    "tab:cub": PublishedTable(
        "CUB-200", 5, "Additional datasets; mean and std of 6 runs", memory_unit=10**6, updates_unit=10**3
    ),
    "text:iid": PublishedTable("ImageNet-1K", 5, "Results, no augmentation, text", order="iid"),
    "text:online": PublishedTable("ImageNet-1K", 5, "Online comparisons, text: SIESTA's 83.59 minus the stated gaps"),
    "text:buffer": PublishedTable("ImageNet-1K", 5, "Additional experiments, text: 130,000 samples stored"),
    "text:time": PublishedTable("ImageNet-1K", 5, "Computational efficiency, text"),
    "text:gain": PublishedTable("ImageNet-1K", 5, "Sleep analyses, text; mean and std over sleeps"),
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
"""Figures that show measurements; their values are known only where a table or the text repeats them."""


@dataclass(frozen=True)
class PublishedRow:
    """One published row; None where nothing is printed. P is in millions; M and U are in the units of the table.

    Attributes:
        table: A key of `TABLES`.
        method: As printed, with an addition where it would not be unique in its table.
        parameters: P.
        mu: Average accuracy, %.
        alpha: Final accuracy, %; of an offline learner that of its best epoch.
        memory: M.
        updates: U.
        gflops: FLOPs per second; higher is better.
        mu_std: Standard deviation of mu.
        alpha_std: Standard deviation of alpha.
        error: Relative error of the quantiser.
        hours: Training time on an RTX A5000.
        samples: Number of quantised samples stored.
        gain: Increase of the accuracy by a sleep, in points.
        gain_std: Standard deviation of gain.
        printed: False for a row that is only a comment in the source.
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


SLEEP_GAINS: dict[int, tuple[float, float]] = {50: (2.29, 0.86), 100: (4.25, 1.38), 150: (6.18, 2.15)}
"""Classes between sleeps -> mean and std of the gain in top-5 accuracy, m = 1.28 M, no augmentation."""


PUBLISHED_ROWS: tuple[PublishedRow, ...] = (
    # table, method, P, mu, alpha, M, U, GFLOPS
    PublishedRow("tab:no_aug", "Offline", 5.48, None, 83.31, 192.87, 768.70),
    PublishedRow("tab:no_aug", "SIESTA*", 5.48, None, 84.07, 2.02, 20.50, printed=False),
    PublishedRow("tab:no_aug", "DER", 54.80, 81.87, 70.15, 20.99, 12.43, 7944.60),
    PublishedRow("tab:no_aug", "ER", 5.48, 76.32, 63.92, 19.59, 11.53, 1294.10),
    PublishedRow("tab:no_aug", "REMIND", 5.48, 81.77, 74.31, 2.02, 11.53, 10139.00),
    PublishedRow("tab:no_aug", "SIESTA", 5.48, 88.33, 83.59, 2.02, 11.53, 19326.00),
    PublishedRow("tab:no_aug", "SIESTA (draft)", 5.48, 87.08, 83.59, 2.02, 11.53, printed=False),
    PublishedRow("tab:aug", "End-to-End", 11.68, 72.09, 52.29, 22.32, 93.26),
    PublishedRow("tab:aug", "Simple-DER", 28.00, 85.62, 80.76, 22.39, 213.17),
    PublishedRow("tab:aug", "iCaRL", 11.68, 63.70, 44.00, 22.32, 79.94),
    PublishedRow("tab:aug", "BiC", 11.68, 84.00, 73.20, 22.32, 119.91),
    PublishedRow("tab:aug", "WA", 11.68, 86.60, 81.10, 22.32, 133.23),
    PublishedRow("tab:aug", "PODNet", 11.68, 81.93, 71.39, 22.32, 226.49),
    PublishedRow("tab:aug", "DER without pruning", 116.89, 88.17, 82.86, 22.74, 213.17),
    PublishedRow("tab:aug", "DER with pruning", None, 87.08, 81.89, 22.32, 213.17),
    PublishedRow("tab:aug", "MEMO", 86.72, 87.15, 80.89, 22.65, 226.49),
    PublishedRow("tab:aug", "FOSTER", 11.68, 83.23, 71.85, 22.32, 226.49),
    PublishedRow("tab:aug", "DyTox", 11.36, 88.78, 83.91, 22.32, 692.80),
    PublishedRow("tab:aug", "ER", 5.48, 82.19, 71.22, 19.59, 58.78),
    PublishedRow("tab:aug", "REMIND", 11.68, 83.61, 77.14, 2.05, 58.78),
    PublishedRow("tab:aug", "SIESTA (No Aug)", 5.48, 88.33, 83.59, 2.02, 11.53),
    PublishedRow("tab:aug", "SIESTA (Aug)", 5.48, 90.67, 87.00, 2.02, 57.60),
    PublishedRow("tab:places", "Offline", None, None, 22.49, None, 2.50),
    PublishedRow("tab:places", "REMIND", None, 25.98, 17.00, None, 0.28, mu_std=1.10, alpha_std=0.54),
    PublishedRow("tab:places", "SIESTA, uniform", None, 29.08, 20.15, None, 0.23, mu_std=1.30, alpha_std=0.41),
    PublishedRow("tab:places", "SIESTA", None, 33.35, 24.88, None, 0.23, mu_std=1.22, alpha_std=0.46),
    PublishedRow("tab:arch", "ResNet18 (Aug)", 10.08, None, 82.63, error=0.40),
    PublishedRow("tab:arch", "MobileNetV3-L (Aug)", 5.36, None, 86.47, error=0.18),
    PublishedRow("tab:arch", "ResNet18 (No Aug)", 10.08, None, 79.54, error=0.40),
    PublishedRow("tab:arch", "MobileNetV3-L (No Aug)", 5.36, None, 84.57, error=0.18),
    PublishedRow("tab:layer_analysis", "SIESTA, layer 3", 5.47, 89.39, 85.18, 32.19, error=0.03),
    PublishedRow("tab:layer_analysis", "SIESTA, layer 5", 5.46, 89.16, 84.68, 8.08, error=0.07),
    PublishedRow("tab:layer_analysis", "SIESTA, layer 8", 5.36, 88.33, 83.59, 2.05, error=0.18),
    PublishedRow("tab:layer_analysis", "SIESTA, layer 14", 4.26, 85.37, 79.69, 0.55, error=0.35),
    PublishedRow("tab:aug_expts_supp", "Offline", 5.48, None, 90.74, 192.87, 753.33),
    PublishedRow("tab:aug_expts_supp", "DER", 54.80, 82.72, 71.82, 20.99, 58.39),
    PublishedRow("tab:aug_expts_supp", "ER", 5.48, 82.19, 71.22, 19.59, 58.78),
    PublishedRow("tab:aug_expts_supp", "REMIND", 5.48, 87.67, 82.97, 2.02, 58.78),
    PublishedRow("tab:aug_expts_supp", "SIESTA", 5.48, 90.67, 87.00, 2.02, 57.60),
    PublishedRow("tab:buffer-size", "SIESTA, 479,665 samples", None, 87.33, 80.57, 0.75, samples=479_665),
    PublishedRow("tab:buffer-size", "SIESTA, 959,665 samples", None, 88.30, 83.30, 1.51, samples=959_665),
    PublishedRow("tab:buffer-size", "SIESTA, 1,281,167 samples", None, 88.33, 83.59, 2.01, samples=1_281_167),
    PublishedRow("tab:batch_size", "SIESTA, batch 32", None, 88.36, 83.53, hours=3.80),
    PublishedRow("tab:batch_size", "SIESTA, batch 64", None, 88.33, 83.59, hours=2.39),
    PublishedRow("tab:batch_size", "SIESTA, batch 128", None, 88.38, 83.72, hours=2.20),
    PublishedRow("tab:batch_size", "SIESTA, batch 256", None, 88.34, 83.61, hours=1.97),
    PublishedRow("tab:batch_size", "SIESTA, batch 512", None, 88.29, 83.50, hours=1.89),
    PublishedRow("tab:ssl", "Supervised (Upper Bound)", alpha=72.33),
    PublishedRow("tab:ssl", "Random Initialization", alpha=67.02),
    PublishedRow("tab:ssl", "MIRA", alpha=67.73),
    PublishedRow("tab:ssl", "MIRA + Barlow Twins", alpha=63.69),
    PublishedRow("tab:ssl", "SEED", alpha=68.78),
    PublishedRow("tab:ssl", "SwAV", alpha=69.86),
    PublishedRow("tab:ssl", "SwAV + E-SSL", alpha=69.71),
    PublishedRow("tab:ssl", "SwAV + SEAL", alpha=69.66),
    PublishedRow("tab:placesfull", "Offline", 5.48, None, 79.90, 271.49, 669.08, printed=False),
    PublishedRow("tab:placesfull", "ER", 5.48, 75.94, 63.90, 19.59, 7.21),
    PublishedRow("tab:placesfull", "REMIND", 5.48, 81.48, 73.52, 2.02, 7.21),
    PublishedRow("tab:placesfull", "SIESTA", 5.48, 87.60, 81.07, 2.02, 7.21),
    PublishedRow("tab:cub", "Offline", 5.48, None, 84.04, 902.26, 587.41, printed=False),
    PublishedRow("tab:cub", "ER", 5.48, 76.30, 74.62, 902.26, 41.96, mu_std=0.73, alpha_std=1.41),
    PublishedRow("tab:cub", "REMIND", 5.48, 74.00, 70.76, 31.40, 41.96, mu_std=1.44, alpha_std=1.94),
    PublishedRow("tab:cub", "SIESTA", 5.48, 86.51, 83.52, 31.40, 38.40, mu_std=0.18, alpha_std=0.28),
    PublishedRow("text:iid", "SIESTA", alpha=83.45),
    PublishedRow("text:iid", "ER", alpha=64.92),
    PublishedRow("text:iid", "REMIND", alpha=79.52),
    PublishedRow("text:online", "SLDA", alpha=55.72),
    PublishedRow("text:online", "NCM", alpha=54.61),
    PublishedRow("text:buffer", "SIESTA", alpha=70.14, samples=130_000),
    PublishedRow("text:buffer", "SIESTA-ER", alpha=71.86, samples=130_000),
    PublishedRow("text:time", "REMIND", hours=8.1),
    *(
        PublishedRow("text:gain", f"SIESTA, asleep every {classes} classes", gain=gain, gain_std=std)
        for classes, (gain, std) in SLEEP_GAINS.items()
    ),
)


def published_row(table: str, method: str) -> PublishedRow:
    """Return the row of a method in a table.

    Example:
        >>> published_row("tab:cub", "SIESTA").alpha
        83.52
    """
    row = find_published_row(table, method)
    if row is None:
        raise KeyError((table, method))
    return row


def find_published_row(table: str, method: str) -> PublishedRow | None:
    """Return the row of a method in a table, or None if nothing is published."""
    return next((row for row in PUBLISHED_ROWS if (row.table, row.method) == (table, method)), None)
