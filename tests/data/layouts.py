"""Small data sets in the published layouts: 3 classes with 4 training and 2 test pictures each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("ant", "bee-wild", "cat")
WNIDS = ("n001", "n002", "n003")
TRAIN, TEST = 4, 2


def picture(path: Path) -> str:
    """Write a picture of unique noise and return its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(list("/".join(path.parts[-2:]).encode())).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path, "JPEG")
    return path.name


def write(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def folders(root: Path, part: str, classes: tuple[str, ...], each: int, inside: str = "") -> None:
    for label in classes:
        for number in range(each):
            picture(root / part / label / inside / f"{label}_{part}_{number}.JPEG")


def image_folder(root: Path) -> Path:
    folders(root, "train", CLASSES, TRAIN)
    folders(root, "val", CLASSES, TEST)
    return root


def imagenet(root: Path) -> Path:
    folders(root, "train", WNIDS, TRAIN)
    folders(root, "val", WNIDS, TEST)
    return root


def cub200(root: Path) -> Path:
    """The official archive: ids increase over classes, and one list selects training pictures."""
    root = root / "CUB_200_2011"
    names = [f"{c:03}.{label}/{label}_{n:04}.jpg" for c, label in enumerate(CLASSES, 1) for n in range(TRAIN + TEST)]
    for name in names:
        picture(root / "images" / name)
    ids = range(1, len(names) + 1)
    write(root / "images.txt", *(f"{i} {name}" for i, name in zip(ids, names, strict=True)))
    write(root / "image_class_labels.txt", *(f"{i} {1 + (i - 1) // (TRAIN + TEST)}" for i in ids))
    write(root / "train_test_split.txt", *(f"{i} {int((i - 1) % (TRAIN + TEST) >= TEST)}" for i in ids))
    write(root / "classes.txt", *(f"{c} {c:03}.{label}" for c, label in enumerate(CLASSES, 1)))
    return root.parent


def places365(root: Path) -> Path:
    """The official lists: categories behind a letter, `-` written as `/`, a flat folder of validation pictures."""
    categories = ["/a/ant", "/b/bee/wild", "/c/cat"]
    train = [f"{category}/{n:08}.jpg {c}" for c, category in enumerate(categories) for n in range(TRAIN)]
    val = [f"Places365_val_{n:08}.jpg {n % len(categories)}" for n in range(TEST * len(categories))]
    for line in train:
        picture(root / "data_256" / line.split()[0].lstrip("/"))
    for line in val:
        picture(root / "val_256" / line.split()[0])
    write(root / "categories_places365.txt", *(f"{category} {c}" for c, category in enumerate(categories)))
    write(root / "places365_train_standard.txt", *reversed(train))
    write(root / "places365_val.txt", *val)
    return root


def places365_lt(root: Path) -> Path:
    """Lists of pictures in the `train` folder of the easy format, validation pictures included."""
    for part, numbers in (("train", range(TRAIN)), ("val", range(TRAIN, TRAIN + TEST)), ("test", range(10, 11))):
        lines = [f"train/{label}/{n:08}.jpg {c}" for c, label in enumerate(CLASSES) for n in numbers]
        for line in lines:
            picture(root / line.split()[0])
        write(root / f"Places_LT_{part}.txt", *lines)
    return root


def cifar_pixels(seed: int) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, 3072, dtype=np.uint8).tobytes()


def cifar10(root: Path) -> Path:
    folder = root / "cifar-10-batches-bin"
    write(folder / "batches.meta.txt", *CLASSES, "")
    batches = {f"data_batch_{n}": n for n in range(1, 6)} | {"test_batch": 6}
    for name, number in batches.items():
        records = [bytes([c]) + cifar_pixels(10 * number + c) for c in range(len(CLASSES))]
        (folder / f"{name}.bin").write_bytes(b"".join(records))
    return root


def cifar100(root: Path) -> Path:
    folder = root / "cifar-100-binary"
    write(folder / "fine_label_names.txt", *CLASSES)
    write(folder / "coarse_label_names.txt", "insects", "mammals")
    for name, each in (("train", TRAIN), ("test", TEST)):
        records = [bytes([c // 2, c]) + cifar_pixels(100 * each + 10 * n + c) for n in range(each) for c in range(3)]
        (folder / f"{name}.bin").write_bytes(b"".join(records))
    return root


def tiny_imagenet(root: Path) -> Path:
    root = root / "tiny-imagenet-200"
    folders(root, "train", WNIDS, TRAIN, "images")
    for wnid in WNIDS:
        write(root / "train" / wnid / f"{wnid}_boxes.txt", f"{wnid}_0.JPEG\t0\t0\t62\t62")
    lines = [f"val_{n}.JPEG\t{WNIDS[n % 3]}\t0\t32\t44\t62" for n in range(TEST * 3)]
    for line in lines:
        picture(root / "val" / "images" / line.split("\t")[0])
    write(root / "val" / "val_annotations.txt", *lines)
    write(root / "words.txt", "n001\tcrane", "n002\tgoldfish, Carassius auratus", "n003\tcrane, bird", "n9\tx")
    return root.parent


def arrays(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    pixels = {f"x_{part}": rng.integers(0, 256, (3 * n, 5, 6, 3), np.uint8) for part, n in (("train", 4), ("test", 2))}
    labels = {"y_train": np.arange(12) % 3, "y_test": np.arange(6) % 3}
    np.savez(root / "set.npz", classes=np.array(CLASSES), **pixels, **labels)  # type: ignore[arg-type]
    return root / "set.npz"


LAYOUTS: dict[str, Callable[[Path], Path]] = {
    "image_folder": image_folder,
    "imagenet": imagenet,
    "cub200": cub200,
    "places365": places365,
    "places365_lt": places365_lt,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "tiny_imagenet": tiny_imagenet,
    "arrays": arrays,
}
