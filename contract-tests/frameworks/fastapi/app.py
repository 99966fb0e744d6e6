"""A typical FastAPI API: eight routes, each of another kind. The API knows nothing about payments."""

from datetime import datetime, timezone
from enum import Enum
from typing import Annotated, Literal, Union

from fastapi import FastAPI, Form, Header, HTTPException, Path, Query, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field

app = FastAPI(title="Harbour")


class Kind(str, Enum):
    ferry = "ferry"
    tug = "tug"


class NewShip(BaseModel):
    name: str = Field(min_length=1, max_length=80)
    kind: Kind = Kind.ferry
    note: str | None = None
    boats: list["NewShip"] = []


class Ship(NewShip):
    id: int
    seen_at: datetime


class Changes(BaseModel):
    name: str | None = None
    note: str | None = None


class Circle(BaseModel):
    shape: Literal["circle"]
    radius: float = Field(gt=0)


class Box(BaseModel):
    shape: Literal["box"]
    width: float = Field(gt=0)
    height: float = Field(gt=0)


class Area(BaseModel):
    area: float


SEEN = datetime(2026, 1, 1, tzinfo=timezone.utc)
ships = {number: Ship(id=number, name=f"Ship {number}", seen_at=SEEN) for number in range(1, 4)}
Number = Annotated[int, Path(ge=1, examples=[1])]


def known(number: int) -> Ship:
    if number not in ships:
        raise HTTPException(404, "no such ship")
    return ships[number]


@app.get("/ships")
def list_ships(kind: Annotated[list[Kind] | None, Query()] = None, limit: int = 10) -> list[Ship]:
    return [ship for ship in ships.values() if not kind or ship.kind in kind][:limit]


@app.post("/ships", status_code=201)
def add_ship(ship: NewShip) -> Ship:
    number = max(ships) + 1
    ships[number] = Ship(id=number, seen_at=SEEN, **ship.model_dump())
    return ships[number]


@app.get("/ships/{number}")
def read_ship(number: Number) -> Ship:
    return known(number)


@app.put("/ships/{number}")
def replace_ship(number: Number, ship: NewShip) -> Ship:
    ships[number] = Ship(id=number, seen_at=known(number).seen_at, **ship.model_dump())
    return ships[number]


@app.patch("/ships/{number}")
def change_ship(number: Number, changes: Changes) -> Ship:
    ships[number] = known(number).model_copy(update=changes.model_dump(exclude_unset=True))
    return ships[number]


@app.delete("/ships/{number}", status_code=204)
def remove_ship(number: Annotated[int, Path(ge=1, examples=[2])]) -> Response:
    known(number)
    return Response(status_code=204)


@app.post("/reports", response_class=PlainTextResponse)
def report(
    text: Annotated[str, Form(examples=["Fog"])],
    x_harbour: Annotated[str, Header(examples=["Kiel"])],
) -> str:
    return f"{x_harbour}: {text}"


@app.post("/areas")
def area(shape: Annotated[Union[Circle, Box], Field(discriminator="shape")]) -> Area:
    return Area(area=3.14 * shape.radius**2 if shape.shape == "circle" else shape.width * shape.height)
