//go:build !race

package tier

const race = false
