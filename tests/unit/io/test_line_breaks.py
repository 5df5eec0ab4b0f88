"""Line breaks inside names and codes, and text that is not UTF-8, in files of cells."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cellguard as cg
from cellguard._io.frames import read_frame
from cellguard.exceptions import FormatError


@pytest.mark.parametrize("name", ["a\rb", "a\nb", 'a"\r\n,;'])
@pytest.mark.parametrize("code", ["N", "N\r", "N\n\r"])
def test_names_and_codes_with_line_breaks_are_read_back(name, code, tmp_path):
    table = cg.Table.from_leaves({name: [code, "S"]}, [1.0, 2.0])
    table.write(tmp_path / "t.csv")
    again = cg.Table.read(tmp_path / "t.csv")
    assert (again.dimensions, again.codes) == (table.dimensions, table.codes)


def test_text_of_a_parquet_file_that_is_not_utf8_is_refused(tmp_path):
    text = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    pq.write_table(pa.table({"region": text, "value": [1.0]}), tmp_path / "t.parquet")
    with pytest.raises(FormatError, match=r"t\.parquet"):
        read_frame(tmp_path / "t.parquet")
