"""Links into Inspect's viewer, and the command that serves them."""

from pathlib import Path

from compression_eval.analysis.report.viewer import viewer_of


def test_one_folder(tmp_path: Path) -> None:
    log = tmp_path / "my logs" / "a b.eval"
    viewer = viewer_of([str(log)], tmp_path / "out", "http://host:1/")
    assert viewer.command == "cd '../my logs' && inspect view --log-dir ."
    assert viewer.link(str(log)) == "http://host:1/#/logs/a%20b.eval/samples/sample"


def test_an_address_of_a_file_and_several_folders(tmp_path: Path) -> None:
    first, second = (tmp_path / "x y" / "1.eval").as_uri(), str(tmp_path / "z" / "2.eval")
    viewer = viewer_of([first, second], tmp_path / "out", "http://host:1")
    assert viewer.command == "cd .. && inspect view --log-dir ."
    assert viewer.names == {first: "x y/1.eval", second: "z/2.eval"}


def test_a_remote_store() -> None:
    paths = ["s3://bucket/runs/one/a.eval", "s3://bucket/runs/two/b.eval"]
    viewer = viewer_of(paths, Path("out"), "http://host:1")
    assert viewer.command == "inspect view --log-dir s3://bucket/runs"
    assert viewer.names[paths[1]] == "two/b.eval"
