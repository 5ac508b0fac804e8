"""Data sets on disk, and the orders in which their training images are presented."""

from siesta.data.arrays import from_arrays
from siesta.data.dataset import Dataset, Picture, Pictures, Split, first_classes, first_images, held_out
from siesta.data.datasets import DATASETS, check_dataset, load_dataset
from siesta.data.folder import has_image_name, labelled_files, picture_files
from siesta.data.orders import ORDERS, check_order, make_stream
from siesta.data.stream import Sample, Stream

__all__ = [
    "DATASETS",
    "ORDERS",
    "Dataset",
    "Picture",
    "Pictures",
    "Sample",
    "Split",
    "Stream",
    "check_dataset",
    "check_order",
    "first_classes",
    "first_images",
    "from_arrays",
    "has_image_name",
    "held_out",
    "labelled_files",
    "load_dataset",
    "make_stream",
    "picture_files",
]
