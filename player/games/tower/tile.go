package tower

// tile is what lies on one cell of a floor. Saved states and hashes hold
// these numbers: they must not change, new tiles take free ones.
type tile uint8

const (
	tileGround tile = 0
	tileWall   tile = 1
	tileUp     tile = 2
	tileDown   tile = 3
	tileCrown  tile = 4

	// Places are opened from the cell beside them.
	tileShop   tile = 8
	tileTrader tile = 9
	tileAltar  tile = 10
	tileChest  tile = 11
	tileSpent  tile = 12

	// Doors and keys: plus the colour.
	tileDoor tile = 16
	tileKey  tile = 20

	// Treasures act as soon as they are picked up.
	tileRedGem   tile = 32
	tileBlueGem  tile = 33
	tilePotion   tile = 34
	tileBigFlask tile = 35
	tileSword    tile = 36
	tileShield   tile = 37

	// Tools go into the bag: plus the item.
	tileTool tile = 48

	// Monsters: plus the kind.
	tileMonster tile = 64
)

// colour of a door and of the key that opens it; the numbers must not
// change.
type colour uint8

const (
	yellow colour = 0
	blue   colour = 1
	red    colour = 2
)

const colours = 3

var colourNames = [colours]string{"yellow", "blue", "red"}

var tileNames = map[tile]string{
	tileGround: "ground", tileWall: "wall", tileUp: "stairs up", tileDown: "stairs down", tileCrown: "crown",
	tileShop: "shop", tileTrader: "trader", tileAltar: "altar", tileChest: "chest", tileSpent: "spent",
	tileRedGem: "red gem", tileBlueGem: "blue gem", tilePotion: "potion", tileBigFlask: "big flask",
	tileSword: "sword", tileShield: "shield",
}

// within says whether t is one of count tiles from base on, and which.
func (t tile) within(base tile, count int) (int, bool) {
	i := int(t) - int(base)
	return i, i >= 0 && i < count
}

func (t tile) door() (colour, bool) {
	i, ok := t.within(tileDoor, colours)
	return colour(i), ok
}

func (t tile) key() (colour, bool) {
	i, ok := t.within(tileKey, colours)
	return colour(i), ok
}

func (t tile) tool() (item, bool) {
	i, ok := t.within(tileTool, items)
	return item(i), ok
}

func (t tile) monster() (kind, bool) {
	i, ok := t.within(tileMonster, len(bestiary))
	return kind(i), ok
}

// treasure says whether t acts at once on whoever steps on it.
func (t tile) treasure() bool {
	_, isKey := t.key()
	_, isTool := t.tool()
	return isKey || isTool || t >= tileRedGem && t <= tileShield
}

// place says whether t is opened from beside it.
func (t tile) place() bool { return t >= tileShop && t <= tileChest }

// known says whether any floor may hold t.
func (t tile) known() bool { return t.String() != "" }

// String names t, for people; empty for a number that is no tile.
func (t tile) String() string {
	if c, ok := t.door(); ok {
		return colourNames[c] + " door"
	}
	if c, ok := t.key(); ok {
		return colourNames[c] + " key"
	}
	if i, ok := t.tool(); ok {
		return itemNames[i]
	}
	if k, ok := t.monster(); ok {
		return bestiary[k].name
	}
	return tileNames[t]
}
