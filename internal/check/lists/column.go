package lists

import "math"

// column is a list of numbers that uses the narrowest width for its largest number. The largest value of each
// width stands for nowhere.
type column struct {
	bytes []uint8
	words []uint16
	longs []uint32
}

func (c *column) at(i uint32) uint32 {
	if c.bytes != nil {
		if v := c.bytes[i]; v != math.MaxUint8 {
			return uint32(v)
		}
		return nowhere
	}
	return c.wide(i)
}

func (c *column) wide(i uint32) uint32 {
	if c.longs != nil {
		return c.longs[i]
	}
	if v := c.words[i]; v != math.MaxUint16 {
		return uint32(v)
	}
	return nowhere
}

func (c *column) set(i, v uint32) {
	c.fit(v)
	switch {
	case c.longs != nil:
		c.longs[i] = v
	case c.words != nil:
		c.words[i] = uint16(v) // nowhere becomes the largest value
	default:
		c.bytes[i] = uint8(v)
	}
}

func (c *column) add(v uint32) {
	c.fit(v)
	switch {
	case c.longs != nil:
		c.longs = append(c.longs, v)
	case c.words != nil:
		c.words = append(c.words, uint16(v))
	default:
		c.bytes = append(c.bytes, uint8(v))
	}
}

// fit widens the column if v does not fit.
func (c *column) fit(v uint32) {
	if v < math.MaxUint8 || v == nowhere || c.longs != nil {
		return
	}
	if v < math.MaxUint16 {
		if c.words == nil {
			c.words = make([]uint16, len(c.bytes), cap(c.bytes))
			for i := range c.words {
				c.words[i] = uint16(c.at(uint32(i)))
			}
			c.bytes = nil
		}
		return
	}
	n := max(len(c.bytes), len(c.words))
	longs := make([]uint32, n, max(n, 1))
	for i := range longs {
		longs[i] = c.at(uint32(i))
	}
	*c = column{longs: longs}
}
