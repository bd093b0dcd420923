# One folder of state: .venv. Every target makes what it needs; delete .venv to start anew.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-

.PHONY: help demo test thorough numerical check torch fuzz browser mutation docs format bench experiments tables wheel clean
help:
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile

$(STAMP)%: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	@touch $@

demo: $(STAMP)plot ## fit LSPC beside a calibrated SVC on digits, print the table, draw the reliability picture
	$(BIN)/python examples/demo.py

test: $(STAMP)test ## the whole test suite, docstring examples and README included
	$(BIN)/python -m pytest tests src README.md docs --doctest-modules --doctest-glob='*.md' -n 2 --dist worksteal

# Tests whose results rounding errors could move: other processors have other BLAS kernels
NUMERICAL := $(addprefix tests/test_,differential.py equal_rows.py extremes.py float32.py klr.py lspc_exact.py \
	metamorphic.py own_centers.py parts.py surface.py tags.py tiny_problems.py trust.py cli.py::TestFit dask_cluster.py)

numerical: $(STAMP)test ## the numerical tests with the BLAS kernels of a processor without AVX-512, and one BLAS thread
	OPENBLAS_CORETYPE=Haswell OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest $(NUMERICAL) -n 2 --dist worksteal

thorough: $(STAMP)test ## many more random tables against the textbook versions than the suite takes, new ones every time
	KPROBA_HYPOTHESIS=thorough $(BIN)/python -m pytest tests/test_differential.py tests/test_metamorphic.py -n 2

check: $(STAMP)dev ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

torch: $(STAMP)test ## the tests of tensors with PyTorch, on the CPU
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pytest tests/test_devices.py

fuzz: $(STAMP)fuzz ## load a million mutated model files, guided by coverage: about an hour on one core
	$(BIN)/python -m benchmarks.fuzzing

browser: $(STAMP)test ## install Chromium if need be, and run the tests of the report in it
	scripts/install_chromium.sh
	$(BIN)/python -m pytest tests/test_report_browser.py

mutation: $(STAMP)mutation ## change the numerical core in thousands of small ways, and count how many the unit tests notice
	$(BIN)/python scripts/mutation.py $(MODULES)

docs: $(STAMP)docs ## the documentation site into out/docs; every example of the gallery is run, with GALLERY=0 none
	$(BIN)/python -m sphinx -b html -W --keep-going -D plot_gallery=$(or $(GALLERY),1) docs out/docs

format: $(STAMP)dev ## rewrite the sources in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)bench ## every benchmark; needs KPROBA_DATA for the sets that are not generated
	$(BIN)/python -m benchmarks.run

experiments: $(STAMP)plot ## the papers' figures
	$(BIN)/python -m experiments.run

tables: $(STAMP)test ## write the tables of README and docs anew, from benchmarks/results and from the registries
	$(BIN)/python -m benchmarks.tables
	$(BIN)/python scripts/names.py

wheel: $(STAMP)dev ## build the wheel and show what is in it
	$(BIN)/python -m build --wheel
	$(BIN)/python -m zipfile -l dist/*.whl

clean: ## remove everything that was made
	rm -rf $(VENV) build dist out mutants docs/api docs/gallery .pytest_cache .mypy_cache .ruff_cache
