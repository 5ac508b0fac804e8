"""Pictures on disk: folders, whole datasets, and the orders in which their pictures come."""

from siesta.data.arrays import from_arrays
from siesta.data.dataset import Dataset, Picture, Pictures, Split, held_out, some_classes
from siesta.data.datasets import DATASETS, check_dataset, load_dataset
from siesta.data.folder import labelled_files, picture_files
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
    "from_arrays",
    "held_out",
    "labelled_files",
    "load_dataset",
    "make_stream",
    "picture_files",
    "some_classes",
]
