"""The words of generated word problems: people, things, places, units."""

from collections.abc import Sequence

_GIRLS = (
    "Amara Anna Bella Carla Chloe Clara Daisy Diana Elena Ella Emma Fatima Fiona Freya Gina Grace Greta Hana Hannah Ines "
    "Iris Isla Ivy Jada Jane Julia June Kate Kira Laura Leila Lena Lily Lola Lucy Maria Maya Mia Mira Nadia Nina Nora "
    "Olga Olive Paula Petra Priya Rosa Rose Ruby Sadie Sara Sofia Stella Tara Tina Uma Vera Wanda Yara Zoe Zara Alice"
).split()
_BOYS = (
    "Aaron Adam Ahmed Alan Amir Andre Ben Boris Bruno Carl Carlos Chen Colin Dario David Diego Dylan Eli Emil Eric Ethan "
    "Felix Finn Frank Fred Gary George Hugo Ian Ivan Jack Jacob Jamal James Jason Jim John Jonas Jose Juan Karl Keith "
    "Kevin Kofi Leo Liam Louis Luke Marco Mark Mateo Max Mike Nathan Neil Nico Noah Omar Oscar Otto Paul Pedro Peter Ravi "
    "Robert Ryan Sam Samir Scott Simon Theo Tim Tom Toni Victor Walter Will Yusuf Zach"
).split()
_PEOPLE = [(name, "she", "her", "her") for name in _GIRLS] + [(name, "he", "him", "his") for name in _BOYS]
_FOLK = (
    "baker/bakery farmer/farm florist/shop teacher/school gardener/garden chef/restaurant librarian/library painter/studio "
    "zookeeper/zoo waiter/cafe coach/club tailor/shop grocer/store fisherman/boat carpenter/workshop shopkeeper/store"
)


def _pairs(text: str) -> list[tuple[str, ...]]:
    return [tuple(row.split("/")) for row in text.split()]


def _phrases(text: str) -> list[tuple[str, ...]]:
    return [tuple(row.strip().split("/")) for row in text.split(",")]


_THINGS = _phrases(
    "apples/apple, oranges/orange, pears/pear, peaches/peach, plums/plum, lemons/lemon, bananas/banana, mangoes/mango, "
    "cherries/cherry, carrots/carrot, potatoes/potato, onions/onion, tomatoes/tomato, pumpkins/pumpkin, turnips/turnip, "
    "eggs/egg, cookies/cookie, cupcakes/cupcake, muffins/muffin, pies/pie, cakes/cake, doughnuts/doughnut, candies/candy, "
    "lollipops/lollipop, chocolates/chocolate, sandwiches/sandwich, pizzas/pizza, hot dogs/hot dog, burgers/burger, "
    "books/book, comics/comic, magazines/magazine, notebooks/notebook, pencils/pencil, pens/pen, crayons/crayon, "
    "markers/marker, erasers/eraser, rulers/ruler, stickers/sticker, stamps/stamp, cards/card, baseball cards/baseball card, "
    "photos/photo, pictures/picture, posters/poster, marbles/marble, balloons/balloon, toys/toy, toy cars/toy car, "
    "dolls/doll, kites/kite, balls/ball, tennis balls/tennis ball, blocks/block, puzzles/puzzle, games/game, beads/bead, "
    "buttons/button, ribbons/ribbon, shells/shell, seashells/seashell, rocks/rock, coins/coin, pennies/penny, "
    "nickels/nickel, dimes/dime, quarters/quarter, tickets/ticket, roses/rose, tulips/tulip, daisies/daisy, "
    "flowers/flower, trees/tree, bushes/bush, seeds/seed, leaves/leaf, fish/fish, goldfish/goldfish, birds/bird, "
    "ducks/duck, chickens/chicken, rabbits/rabbit, puppies/puppy, kittens/kitten, cats/cat, dogs/dog, horses/horse, "
    "cows/cow, sheep/sheep, goats/goat, frogs/frog, butterflies/butterfly, bees/bee, shirts/shirt, hats/hat, socks/sock, "
    "dresses/dress, scarves/scarf, plates/plate, cups/cup, bowls/bowl, spoons/spoon, bottles/bottle, candles/candle, "
    "lamps/lamp, chairs/chair, tables/table, bricks/brick, boards/board, nails/nail, tiles/tile, songs/song, movies/movie, "
    "emails/email, letters/letter, points/point, pages/page, bottle caps/bottle cap, water bottles/water bottle, "
    "pieces of candy/piece of candy, pieces of paper/piece of paper, bags of chips/bag of chips"
)
_FAMILIES = _phrases(
    "apples/pears/fruits, oranges/lemons/fruits, bananas/peaches/pieces of fruit, cookies/brownies/treats, "
    "cupcakes/muffins/pastries, roses/tulips/flowers, daisies/lilies/flowers, cats/dogs/pets, cows/sheep/animals, "
    "ducks/geese/birds, parrots/canaries/birds, pens/pencils/writing tools, novels/comics/books, shirts/trousers/clothes, "
    "hats/scarves/clothes, cars/trucks/vehicles, bikes/scooters/vehicles, boys/girls/children, boys/girls/students, "
    "men/women/people, adults/children/people, carrots/onions/vegetables, potatoes/turnips/vegetables, nickels/dimes/coins, "
    "pennies/quarters/coins, chairs/stools/seats, oak trees/pine trees/trees, maples/birches/trees, action games/puzzle "
    "games/games, guitars/drums/instruments, rock songs/jazz songs/songs, forks/spoons/pieces of cutlery, "
    "letters/postcards/pieces of mail, red balloons/blue balloons/balloons, green marbles/black marbles/marbles, "
    "small boxes/big boxes/boxes, sodas/juices/drinks, burgers/hot dogs/meals, cakes/pies/desserts, nurses/doctors/workers"
)
_BOXES = _phrases(
    "boxes/box, bags/bag, baskets/basket, jars/jar, packs/pack, packages/package, crates/crate, cartons/carton, "
    "shelves/shelf, drawers/drawer, trays/tray, rows/row, piles/pile, groups/group, bins/bin, tables/table, buckets/bucket, "
    "bowls/bowl, albums/album, binders/binder, folders/folder, cages/cage, tanks/tank, rooms/room, pages/page"
)
_SHARERS = _phrases(
    "friends/friend, children/child, students/student, cousins/cousin, classmates/classmate, neighbors/neighbor, "
    "players/player, guests/guest, workers/worker, brothers/brother, kids/kid, people/person, teams/team, members/member"
)
_PLACES = (
    "garden park kitchen classroom library store market barn box basket drawer room yard school zoo museum bakery shop "
    "pond field forest attic garage office restaurant"
)
_COLOURS = "red blue green yellow orange purple white black pink brown silver gold gray"
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January March April May June July August October"
_KIN = "sister brother mother father mom dad uncle aunt cousin grandmother grandfather friend neighbor teacher"
_AMOUNTS = _phrases(
    "miles/mile/long, kilometers/kilometer/long, meters/meter/long, feet/foot/long, inches/inch/long, yards/yard/long"
)
_MASSES = _phrases(
    "pounds/pound/flour, pounds/pound/sugar, kilograms/kilogram/rice, pounds/pound/apples, kilograms/kilogram/sand, "
    "ounces/ounce/cheese, tons/ton/coal, tons/ton/grain, pounds/pound/nuts, grams/gram/salt, liters/liter/water, "
    "gallons/gallon/milk, liters/liter/juice, gallons/gallon/paint, cups/cup/flour, cups/cup/sugar, quarts/quart/soup, "
    "liters/liter/oil, pounds/pound/meat, pounds/pound/potatoes, buckets/bucket/sand, gallons/gallon/gas"
)
_JOBS = _phrases(
    "mowing lawns, washing cars, babysitting, walking dogs, selling lemonade, raking leaves, shoveling snow, "
    "delivering newspapers, tutoring, painting fences, cleaning windows, doing chores"
)
_GOODS = _phrases(
    "a shirt, a book, a toy, a hat, a sandwich, a ball, a game, a jacket, a pair of shoes, a notebook, lunch, a movie "
    "ticket, a bag, a scarf, a lamp, a cake, a pizza, a watch, a puzzle, dinner, a skateboard, a basketball, a belt"
)

_GROUPS: tuple[tuple[tuple[str, ...], Sequence[tuple[str, ...]]], ...] = (
    (("N", "he", "him", "his"), _PEOPLE),
    (("M", "mhe", "mhim", "mhis"), _PEOPLE),
    (("O", "ohe", "ohim", "ohis"), _PEOPLE),
    (("xs", "x"), _THINGS),
    (("ys", "y"), _THINGS),
    (("us", "vs", "kind"), _FAMILIES),
    (("boxes", "box"), _BOXES),
    (("kids", "kid"), _SHARERS),
    (("place",), _pairs(_PLACES)),
    (("color",), _pairs(_COLOURS)),
    (("hue",), _pairs(_COLOURS)),
    (("day",), _pairs(_DAYS)),
    (("later",), _pairs(_DAYS)),
    (("kin",), _pairs(_KIN)),
    (("kins",), _pairs(_KIN)),
    (("miles", "mile", "long"), _AMOUNTS),
    (("pounds", "pound", "stuff"), _MASSES),
    (("job",), _JOBS),
    (("good",), _GOODS),
    (("ware",), _GOODS),
    (("worker", "firm"), _pairs(_FOLK)),
)
WORDS = {slot: group for group in _GROUPS for slot in group[0]}
"""For each slot, the slots drawn together with it (a name and its pronouns) and the words they can hold."""
