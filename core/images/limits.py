"""How large a file, a picture and an upload may be, checked from headers before anything is unpacked.

The limits protect a process that many people share. A picture is refused when its *header* asks for too
much, so that a few hundred bytes which unfold to gigabytes cost nothing. The checks are our own: no
library's global switch (such as Pillow's MAX_IMAGE_PIXELS) is touched.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.images.errors import BadImage, size_in_words


@dataclass(frozen=True)
class Limits:
    """The most that one upload may ask for.

    Attributes:
        file_bytes: Bytes of one file as it arrives, and of one file inside a zip.
        pixels: Rows times columns of one slice, frame or page.
        slices: Slices, frames or pages of one file.
        files: Files of one upload; the files inside a zip count.
        unpacked_bytes: Bytes of everything that one upload unpacks to: all files of a zip together, and,
            counted apart, all decoded pixels together.
    """

    file_bytes: int = 256 * 1024**2
    pixels: int = 80_000_000
    slices: int = 2_000
    files: int = 500
    unpacked_bytes: int = 1024**3


LIMITS = Limits()


class Budget:
    """Adds up what one call of the reader has promised to decode. One call, one budget; never shared."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.spent = 0
        self.files = 0

    def take_file(self, name: str, nbytes: int) -> None:
        """Counts one more file of `nbytes` bytes.

        Raises:
            BadImage: The file is too large, or one file too many.
        """
        self.check_file_size(name, nbytes)
        if self.files + 1 > self.limits.files:
            raise BadImage(
                f"{name} was left out: one upload may hold at most {self.limits.files:,} files "
                "(limit on files). Send the rest in a second upload."
            )
        self.files += 1

    def check_file_size(self, name: str, nbytes: int) -> None:
        """Refuses a file over `Limits.file_bytes`."""
        if nbytes > self.limits.file_bytes:
            raise BadImage(
                f"{name} has {size_in_words(nbytes)}; one file may have at most "
                f"{size_in_words(self.limits.file_bytes)} (limit on bytes). Make it smaller or send a part of it."
            )

    def check_slices(self, name: str, slices: int, least: bool = False) -> None:
        """Refuses more slices, frames or pages than `Limits.slices`; `least`: counting stopped there."""
        if slices > self.limits.slices:
            raise BadImage(
                f"{name} holds {'at least ' if least else ''}{slices:,} slices, frames or pages; one file may hold "
                f"at most {self.limits.slices:,} (limit on slices). Split it, or keep the part that matters."
            )

    def check_pixels(self, name: str, rows: int, columns: int) -> None:
        """Refuses an empty picture and one with more pixels a slice than `Limits.pixels`."""
        if rows < 1 or columns < 1:
            raise BadImage(
                f"{name} says that it is {columns} × {rows} pixels, so there is nothing in it to read."
            )
        if rows * columns > self.limits.pixels:
            raise BadImage(
                f"{name} says that it is {columns:,} × {rows:,} pixels; one picture may have at most "
                f"{self.limits.pixels:,} (limit on pixels). Make it smaller or cut out the part that matters."
            )

    def claim(self, name: str, rows: int, columns: int, slices: int = 1, pixel_bytes: int = 1) -> None:
        """Checks a picture's header and adds its decoded bytes to the upload's sum.

        Args:
            name: The file's name, for the sentence.
            rows: Rows of a slice.
            columns: Columns of a slice.
            slices: Slices, frames or pages.
            pixel_bytes: Bytes of one decoded pixel, all channels.

        Raises:
            BadImage: A limit would be broken; the sentence names it.
        """
        if slices < 1:
            raise BadImage(f"{name} says that it holds {slices} slices, so there is nothing in it to read.")
        self.check_slices(name, slices)
        self.check_pixels(name, rows, columns)
        wanted = rows * columns * slices * max(1, pixel_bytes)
        if self.spent + wanted > self.limits.unpacked_bytes:
            already = f" besides the {size_in_words(self.spent)} of the files before it" if self.spent else ""
            raise BadImage(
                f"{name} would unpack to {size_in_words(wanted)}{already}; one upload may unpack to at most "
                f"{size_in_words(self.limits.unpacked_bytes)} (limit on unpacked bytes). Send fewer or smaller files."
            )
        self.spent += wanted
