# One folder of state: .venv. Every target makes what it needs; delete .venv to start anew.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-

.PHONY: help demo test thorough numerical check torch fuzz browser mutation docs format bench experiments tables picture wheel lowest publish clean
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
NUMERICAL := $(addprefix tests/test_,differential.py equal_rows.py extremes.py float32.py klr.py klr_forms.py local.py lspc_exact.py \
	metamorphic.py own_centers.py parts.py surface.py tags.py tiny_problems.py trust.py cli.py::TestFit dask_cluster.py)

numerical: $(STAMP)test ## the numerical tests with the BLAS kernels of a processor without AVX-512, and one BLAS thread
	OPENBLAS_CORETYPE=Haswell OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest $(NUMERICAL) -n 2 --dist worksteal

thorough: $(STAMP)test ## many more random tables against the textbook versions than the suite takes, new ones every time
	KPROBA_HYPOTHESIS=thorough $(BIN)/python -m pytest tests/test_differential.py tests/test_metamorphic.py -n 2

check: $(STAMP)dev ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/zizmor --offline --quiet .github

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

docs: $(STAMP)docs ## the documentation site into out/docs; every example of the gallery is run, with GALLERY=0 the tutorial only
	$(BIN)/python -m sphinx -b html -W --keep-going -D sphinx_gallery_conf.filename_pattern=$(if $(filter 0,$(GALLERY)),start_to_decision,.py) docs out/docs

format: $(STAMP)dev ## rewrite the sources in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)bench ## every benchmark; needs KPROBA_DATA for the sets that are not generated
	$(BIN)/python -m benchmarks.run

experiments: $(STAMP)plot ## the papers' figures
	$(BIN)/python -m experiments.run

tables: $(STAMP)test ## write the tables and dot plots of README and docs anew, from benchmarks/results and from the registries
	$(BIN)/python -m benchmarks.tables
	$(BIN)/python -m benchmarks.pictures
	$(BIN)/python scripts/names.py
	$(BIN)/python scripts/flowchart.py

picture: $(STAMP)test ## take the picture of a report for the README and the site anew, in Chromium, which it installs
	scripts/install_chromium.sh
	$(BIN)/python scripts/report_picture.py

wheel: $(STAMP)dev ## build the source distribution and the wheel, check them and show what is in the wheel
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m zipfile -l dist/*.whl

# What touches every dependency and extra: solvers, arrays, files, tables, figures, graphs, sequences, images, clusters.
# Arrow could not write float16 then.
LOWEST := $(addprefix tests/test_,lspc_exact.py links.py metrics.py dependence.py sources.py items.py bags.py report.py \
	dask_cluster.py cli.py::TestPredict onnx.py::TestClasses) -k "not test_types_of_numbers"
EXTRAS := plot,progress,dask,sequences,alignment,pictures,tables,onnx,shap
TOOLS := pytest hypothesis onnxruntime polars skops clarabel array-api-strict

lowest: wheel ## install the wheel with the lowest versions of everything that its metadata allows, and run tests with it
	rm -rf $(VENV)/lowest
	$(PYTHON) -m venv $(VENV)/lowest
	$(BIN)/python scripts/lowest.py > $(VENV)/lowest.txt
	$(VENV)/lowest/bin/python -m pip install --quiet --disable-pip-version-check -c $(VENV)/lowest.txt "$$(ls dist/*.whl)[$(EXTRAS)]" $(TOOLS)
	SCIPY_ARRAY_API=1 OPENBLAS_NUM_THREADS=1 $(VENV)/lowest/bin/python -m pytest $(LOWEST)

VERSION = v$(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' src/kproba/version.py)

publish: wheel ## tag the committed version and push the tag: the release workflow builds, checks and publishes it
	@git diff --quiet HEAD || { echo "there are changes that are not committed: commit them first"; exit 1; }
	git tag --annotate $(VERSION) --message "kproba $(VERSION)"
	git push origin $(VERSION)

clean: ## remove everything that was made
	rm -rf $(VENV) build dist out mutants docs/api docs/gallery .pytest_cache .mypy_cache .ruff_cache
