"""Write the generated parts of the documents: PYTHONPATH=tests python -m docs.generate."""

from docs.generate import ROOT, documents


def main() -> None:
    for path, text in documents().items():
        if path.read_text() != text:
            path.write_text(text)
            print(f"changed: {path.relative_to(ROOT)}")


main()
