#!/usr/bin/env python3
"""The functions of examples/dags/weather.yaml: WEATHER_DIR=weather ./weather.py http://127.0.0.1:7070

It plays five weather stations, and keeps one file for each day. Station 3 fails at the first request for every tenth day."""
import csv
import os
import pathlib
import threading
import zlib

import worker

DIRECTORY = pathlib.Path(os.environ.get("WEATHER_DIR", "weather"))
FAILED = set()  # Requests that have failed once.
LOCK = threading.Lock()


def list_stations(_input, _job):
    return ["station-1", "station-2", "station-3", "station-4", "station-5"]


def read_station(task, _job):
    station, day = task["station"], task["day"]
    with LOCK:
        if station == "station-3" and day.endswith("0") and (station, day) not in FAILED:
            FAILED.add((station, day))
            raise RuntimeError("the station does not answer")
    return {"station": station, "celsius": zlib.crc32(f"{station} {day}".encode()) % 300 / 10}


def store_day(task, _job):
    """Writes the file of a day as a whole: a repeated call leaves the same file."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    file, part = DIRECTORY / f"{task['day']}.csv", DIRECTORY / f".{task['day']}.part"
    with open(part, "w", newline="") as rows:
        table = csv.DictWriter(rows, ["station", "celsius"])
        table.writeheader()
        table.writerows(task["rows"])
    part.replace(file)
    return {"file": str(file), "rows": len(task["rows"])}


def report_day(task, _job):
    with open(task["file"], newline="") as rows:
        temperatures = [float(row["celsius"]) for row in csv.DictReader(rows)]
    return {"day": task["day"], "mean": round(sum(temperatures) / len(temperatures), 1)}


worker.FUNCTIONS = {
    "list-stations": list_stations,
    "read-station": read_station,
    "store-day": store_day,
    "report-day": report_day,
}
if __name__ == "__main__":
    worker.work()
