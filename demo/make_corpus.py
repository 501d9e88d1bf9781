#!/usr/bin/env python3
"""Writes the demo's texts: simple made-up stories for pretraining, and the task that fine-tuning learns.

    make_corpus.py stories --rows 60000 --seed 1 > stories.jsonl      rows {"text"}
    make_corpus.py task --rows 2000 --seed 1 > train.jsonl            rows {"prompt", "completion"}
    make_corpus.py held-out --rows 300 --seed 1 > held_out.jsonl      the same task, other names

The stories talk about people, places, animals, ages, numbers and spelling, always in plain English. The task turns such a
sentence into a JSON record, a form that no story shows. Names of people and places are built from syllables, and a tenth
of them (chosen by a checksum) is set aside: those are in the held-out rows and nowhere else.
"""

import argparse
import json
import random
import sys
import zlib

ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen").split()
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
ANIMALS = {"cat": "cats", "dog": "dogs", "goose": "geese", "mouse": "mice", "sheep": "sheep", "pony": "ponies",
           "duck": "ducks", "goat": "goats", "owl": "owls", "fox": "foxes", "hen": "hens", "wolf": "wolves"}
COLOURS = "red blue green grey white black brown yellow".split()
THINGS = "kite boat hat cup lamp coat door book".split()
ONSETS = list("bdfgklmnprstvz") + ["br", "dr", "kr", "st", "th", "sh"]
VOWELS = list("aeiou")
CODAS = ["", "", "l", "n", "r", "s", "m"]
PLACE_ENDINGS = ["ford", "ton", "by", "ham", "field", "dale"]


def words(number):
    """The number below 100 in words."""
    if number < 20:
        return ONES[number]
    return TENS[number // 10] + ("-" + ONES[number % 10] if number % 10 else "")


def set_aside(name):
    """Whether the name belongs to the held-out rows alone."""
    return zlib.crc32(name.encode()) % 10 == 0


class Writer:
    def __init__(self, seed, held_out=False):
        self.rng = random.Random(seed)
        self.held_out = held_out
        self.pick = self.rng.choice

    def chance(self, share):
        return self.rng.random() < share

    def word(self):
        """One or two made-up syllables."""
        syllables = "".join(self.pick(ONSETS) + self.pick(VOWELS) for _ in range(self.rng.randint(1, 2)))
        return syllables + self.pick(CODAS)

    def name(self):
        while True:
            name = (self.pick(ONSETS) + self.pick(VOWELS) + self.word()).capitalize()
            if set_aside(name) == self.held_out:
                return name

    def place(self):
        while True:
            place = (self.word() + self.pick(PLACE_ENDINGS)).capitalize()
            if set_aside(place) == self.held_out:
                return place

    def person(self):
        return {"name": self.name(), "age": self.rng.randint(3, 99), "home": self.place(),
                "animal": self.pick(list(ANIMALS)), "count": self.rng.randint(1, 19)}

    # What is said about a person: `facts` names the fields that the sentence tells.

    def flock(self, p):
        return words(p["count"]) + " " + (p["animal"] if p["count"] == 1 else ANIMALS[p["animal"]])

    def whole(self, p):
        """Everything about a person in one or two sentences."""
        name, age, home, flock = p["name"], words(p["age"]), p["home"], self.flock(p)
        return self.pick([
            f"{name} of {home} is {age} years old and keeps {flock}.",
            f"{name} is {age} years old and lives in {home} with {flock}.",
            f"In {home} lives {name}, who is {age} and keeps {flock}.",
            f"{name} has {flock}. {name} is {age} and comes from {home}.",
            f"{name}, {age} years old, walks through {home} with {flock}.",
            f"With {flock} at home in {home}, {name} is never alone at {age}.",
        ])

    def single(self, p):
        """One fact, as a sentence."""
        name = p["name"]
        return self.pick([
            f"{name} is {words(p['age'])} years old.", f"{name} lives in {p['home']}.", f"{name} keeps {self.flock(p)}.",
            f"The home of {name} is {p['home']}.", f"{name} has {self.flock(p)}."])

    def question(self, p):
        """A question about a person and its answer, with the answer now bare, now quoted."""
        name, answer = p["name"], (lambda s: f'"{s}"' if self.chance(0.6) else s)
        one = p["animal"]
        return self.pick([
            f"How old is {name}? {words(p['age']).capitalize()}.",
            f"The name is {answer(name)}.",
            f"What is the age of {name} in digits? {p['age']}.",
            f"Age in digits: {p['age']}.",
            f"Where does {name} live? {answer(p['home'])}.",
            f"Home: {answer(p['home'])}.",
            f"Who lives in {p['home']}? {answer(name)}.",
            f"Who is {words(p['age'])}? {answer(name)}.",
            f"What is the name? {answer(name)}.",
            f"How many {ANIMALS[one]} has {name}? {p['count']}.",
            f"The count of animals in digits is {p['count']}.",
            f"Which animal has {name}? {answer(one)}.",
            f"Animal: {answer(one)}.",
        ])

    # Stories.

    def story(self):
        kind = self.rng.random()
        if kind < 0.55:
            return self.people()
        if kind < 0.65:
            return self.numbers()
        if kind < 0.75:
            return self.spelling()
        if kind < 0.85:
            return self.copying()
        if kind < 0.93:
            return self.animals()
        return self.things()

    def people(self):
        people = [self.person() for _ in range(self.pick([1, 1, 2]))]
        told = [self.whole(p) for p in people]
        self.rng.shuffle(told)
        if len(people) == 1:
            asked = [self.question(people[0]) for _ in range(self.rng.randint(3, 6))]
        else:  # only questions that name the person can be answered
            asked = []
            while len(asked) < 3:
                p = self.pick(people)
                q = self.question(p)
                if p["name"] in q.split("?")[0]:
                    asked.append(q)
        return " ".join(told) + self.pick(["\n", " "]) + " ".join(asked)

    def numbers(self):
        n = self.rng.randint(0, 94)
        run = range(n, n + 5)
        return self.pick([
            " ".join(f"{words(i)} is {i}." for i in self.rng.sample(range(100), 5)),
            " ".join(f"{i} is {words(i)}." for i in self.rng.sample(range(100), 5)),
            "Count: " + ", ".join(words(i) for i in run) + ". In digits: " + ", ".join(str(i) for i in run) + ".",
        ])

    def spelling(self):
        name = self.pick([self.name, self.place])()
        return self.pick([
            f"{name} is spelled " + " ".join(name) + ".", " ".join(name) + f" spells {name}.",
            f'"{name}" has {words(len(name))} letters. It begins with {name[0]} and ends with {name[-1]}.'])

    def copying(self):
        if self.chance(0.5):
            listed = [self.pick([self.name, self.place])() for _ in range(self.rng.randint(2, 5))]
            quoted = [f'"{w}"' for w in listed] if self.chance(0.5) else listed
            return f"Say {', '.join(listed)}. Again: {', '.join(quoted)}."
        signs = "".join(chr(self.rng.randint(33, 126)) for _ in range(self.rng.randint(6, 16)))
        return f"Copy {signs} here: {signs}"

    def animals(self):
        one, many = self.pick(list(ANIMALS.items()))
        n = self.rng.randint(2, 19)
        colour = self.pick(COLOURS)
        return self.pick([
            f"One {one}, {words(n)} {many}.", f'{words(n).capitalize()} {many}: each is called "{one}".',
            f"{words(n).capitalize()} {many}, then only one {one} is left.",
            f"The {one} is {colour}. It is a {colour} {one}. All {many} here are {colour}."])

    def things(self):
        name, thing, colour, other = self.name(), self.pick(THINGS), self.pick(COLOURS), self.pick(COLOURS)
        return self.pick([
            f"{name} has a {colour} {thing}. What colour is the {thing}? {colour.capitalize()}. Whose {thing} is it? {name}'s.",
            f"{name} painted the {colour} {thing} {other}. Now the {thing} of {name} is {other}.",
            f"The {thing} is {colour}, said {name}. Who said so? {name}."]) + " " + self.single(self.person())

    # The task.

    def task(self):
        p = self.person()
        return {"prompt": self.whole(p) + "\n", "completion": json.dumps(p)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["stories", "task", "held-out"])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    writer = Writer(f"{options.what} {options.seed}", held_out=options.what == "held-out")
    for _ in range(options.rows):
        row = {"text": writer.story()} if options.what == "stories" else writer.task()
        sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
