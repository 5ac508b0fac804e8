"""Images: from a file, PIL image or array to upright, resized and cropped pixels, in bounded memory."""

from siesta.images.decode import MAX_PIXELS, check_limits, is_large
from siesta.images.inputs import ImageInput
from siesta.images.read import CROP_SHARE, ImageLike, Pixels, decode_file, normalize, read_image, read_opened

__all__ = [
    "CROP_SHARE",
    "MAX_PIXELS",
    "ImageInput",
    "ImageLike",
    "Pixels",
    "check_limits",
    "decode_file",
    "is_large",
    "normalize",
    "read_image",
    "read_opened",
]
