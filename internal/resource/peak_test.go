package resource

import "testing"

// TestResidentMemoryIncludesUsedMemory checks that the memory of a process includes the pages that it has written.
func TestResidentMemoryIncludesUsedMemory(t *testing.T) {
	const size = 200 << 20
	used := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		used[i] = 1
	}
	if resident := Resident(); resident < size {
		t.Errorf("%d MB are resident while %d MB are used", resident>>20, size>>20)
	}
	if Free() <= 0 {
		t.Error("the free memory is not known")
	}
	_ = used[0]
}
