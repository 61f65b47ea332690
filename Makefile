# Plumbline. `make app` starts the server, `make test` runs what the continuous integration runs.
#
#   make app                        on this computer only, http://localhost:8501
#   make app HOST=0.0.0.0           for a classroom: prints the address for the network
#   make app PORT=9000              another port
#   make test [TESTS=tests/lab]     ruff, mypy on core, pytest
#   make check                      ruff and mypy alone
#   make clean                      remove the environment and what tools left behind

PYTHON ?= python3
VENV ?= .venv
PORT ?= 8501
HOST ?= 127.0.0.1
TESTS ?= tests

PY := $(VENV)/bin/python
APP_READY := $(VENV)/.app-ready
DEV_READY := $(VENV)/.dev-ready

.PHONY: app test check browser clean help
.DELETE_ON_ERROR:

help:
	@sed -n 's/^# \{0,1\}//; 1,/^PYTHON/p' Makefile | sed '/^PYTHON/d'

$(PY):
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"Plumbline needs Python 3.11 or newer; $(PYTHON) is {v.major}.{v.minor}. Try: make PYTHON=python3.12 app")'
	$(PYTHON) -m venv $(VENV)

# torch first, with its own line: a build that is already in the environment and fits (for instance the CPU build) is kept.
$(APP_READY): requirements.txt | $(PY)
	@echo "Installing what Plumbline needs. The first time takes a few minutes."
	$(PY) -m pip install --quiet $$(grep -E '^torch(vision)?[<>=~!]' requirements.txt)
	$(PY) -m pip install --quiet -r requirements.txt
	@touch $@

$(DEV_READY): requirements-dev.txt $(APP_READY)
	$(PY) -m pip install --quiet -r requirements-dev.txt
	@touch $@

app: $(APP_READY)
	@echo "Plumbline on this computer:   http://localhost:$(PORT)"
	@if [ "$(HOST)" = "127.0.0.1" ]; then \
	    echo "For a classroom network:      make app HOST=0.0.0.0"; \
	else \
	    $(PY) -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("10.254.254.254", 1)); \
	        print(f"For the classroom network:    http://{s.getsockname()[0]}:$(PORT)")' 2>/dev/null \
	        || echo "For the classroom network:    this computer has no network at the moment."; \
	fi
	@$(PY) -m streamlit run app.py --server.port=$(PORT) --server.address=$(HOST)

check: $(DEV_READY)
	$(PY) -m ruff check .
	$(PY) -m mypy

browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do command -v $$name >/dev/null && exit 0; done; \
	if [ -d "/Applications/Google Chrome.app" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends chromium fonts-dejavu-core; \
	else \
	    echo "The browser tests need chromium, and it is not installed. Debian or Ubuntu: sudo apt-get install chromium;"; \
	    echo "Fedora: sudo dnf install chromium; macOS: install Google Chrome. Then run make test again."; \
	    exit 1; \
	fi

test: check browser
	$(PY) -m pytest $(TESTS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
