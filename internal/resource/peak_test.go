package resource

import (
	"testing"
	"time"
)

// TestPeakSeesMemoryThatIsGone checks that memory that was released counts.
func TestPeakSeesMemoryThatIsGone(t *testing.T) {
	const size = 200 << 20
	before := Peak(time.Millisecond)()
	end := Peak(time.Millisecond)
	used := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		used[i] = 1
	}
	time.Sleep(20 * time.Millisecond)
	if peak := end(); peak < before || peak < size {
		t.Errorf("the peak is %d MB after %d MB were used", peak>>20, size>>20)
	}
	if Free() <= 0 {
		t.Error("the free memory is not known")
	}
	_ = used[0]
}
