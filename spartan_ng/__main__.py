"""`python -m spartan_ng`, where the folder of commands is not on the path."""

from spartan_ng.cli import main

if __name__ == "__main__":
    main(prog_name="python -m spartan_ng")
