"""What the README shows, in the order in which it shows it."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_every_snippet_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    snippets = re.findall("^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert len(snippets) == 4
    names, said = {}, []
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)
        said.append(capsys.readouterr().out)
    assert said[0] == "{'id': 1, 'customer': 7, 'total': Decimal('13.00')}\n"
    assert said[1].startswith("1\ncustomer\n7    13.00\n")
    assert said[2] == "[1, 2]\n"
    assert said[3].startswith("report ") and said[3].endswith("\n1\n")
