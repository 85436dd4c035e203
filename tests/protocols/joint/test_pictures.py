"""Pictures of runs are drawn from transcripts alone."""

from __future__ import annotations

import numpy as np

from discreet.page import Page
from discreet.protocols.joint.methods.matrix_product import MatrixProduct
from discreet.protocols.joint.pictures import draw_noise, run_sections
from discreet.protocols.joint.rehearsal import rehearse_protocol


def test_a_page_of_a_run_names_parties_bytes_and_openings():
    x = np.array([[1.0], [2.0], [3.0]])
    run = rehearse_protocol(MatrixProduct(), {"clinic": x, "bank": x})
    transcripts = {name: one.to_dict() for name, one in run.transcripts.items()}
    page = Page("run", run_sections(transcripts, MatrixProduct().leakage())).html()
    for said in ("clinic → bank", "dealer", "sums of 1 products", "opened to it", "rounds"):
        assert said in page


def test_whole_noise_has_no_empty_bins():
    drawn = np.arange(-70, 71)
    assert draw_noise(drawn, drawn, bins=40).startswith("<svg")
