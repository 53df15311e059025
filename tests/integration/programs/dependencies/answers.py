"""Reads a file of an archive and imports a package of the requirements, in every slot; prints what each found.

usage: answers.py MASTER ARCHIVE REQUIREMENTS WHEELS
"""

import os
import sys

from rekindle.common import Configuration, Types
from rekindle.datastream import StreamExecutionEnvironment


def found(number):
    import tinydep

    with open("data/words.txt", encoding="utf-8") as file:
        words = file.read().strip()
    return f"{words} {tinydep.answer()} {os.path.basename(os.getcwd())}"


def main():
    master, archive, requirements, wheels = sys.argv[1:]
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"rekindle.master": master, "rekindle.progress": "off"})
    )
    env.set_parallelism(2)
    env.add_python_archive(archive, "data")
    env.set_python_requirements(requirements, wheels)
    with env.from_sequence(1, 20).map(found, Types.STRING()).execute_and_collect() as texts:
        for text in texts:
            print(text)


main()
