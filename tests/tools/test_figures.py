from tools.figures import DOCS, draw_carry


def test_the_figure_of_a_carry(tmp_path):
    draw_carry(tmp_path / "carry.svg")
    drawn = (tmp_path / "carry.svg").read_text()
    assert "<svg" in drawn and (DOCS / "carry.svg").is_file()
    draw_carry(tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == drawn
