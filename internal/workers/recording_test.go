package workers

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
)

// TestAlteredUploadsAreRefused checks that no piece of a recording can be omitted, repeated, altered or
// added.
func TestAlteredUploadsAreRefused(t *testing.T) {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	pieces := func() (list []piece) {
		sum := uint32(0)
		for i, text := range []string{"all ", "the ", "money", ""} {
			offset := int64(4 * i)
			if i == 3 {
				offset = 13
			}
			sum = crc32.Update(sum, castagnoli, []byte(text))
			list = append(list, piece{Offset: offset, Data: encoder.EncodeAll([]byte(text), nil), Sum: sum, Last: i == 3})
		}
		return list
	}
	take := func(list []piece) error {
		u := upload{path: filepath.Join(t.TempDir(), "sent", "x")}
		defer u.close()
		for i := range list {
			if err := u.add(&list[i]); err != nil {
				return err
			} else if u.is().Whole != list[i].Last {
				t.Error("it is whole too early or too late")
			}
		}
		data, err := os.ReadFile(u.path)
		if err == nil && string(data) != "all the money" {
			t.Errorf("%q came", data)
		}
		return err
	}
	if err := take(pieces()); err != nil {
		t.Error(err)
	}
	altered, other := pieces(), pieces()
	altered[1].Data[len(altered[1].Data)-1] ^= 1
	other[1].Data = encoder.EncodeAll([]byte("thy "), nil)
	bomb := pieces()
	bomb[1].Data = encoder.EncodeAll(make([]byte, 64*pieceSize), nil)
	for name, list := range map[string][]piece{
		"altered": altered, "another text": other, "too large": bomb, "lost": slices.Delete(pieces(), 1, 2), "doubled": slices.Insert(pieces(), 1, pieces()[0]),
		"moved": {pieces()[1], pieces()[0], pieces()[2], pieces()[3]}, "more": append(pieces(), pieces()[3]),
	} {
		if err := take(list); !errors.Is(err, errPiece) {
			t.Errorf("%s: it is taken, or %v", name, err)
		}
	}
}

// uploading sends a file over pipes to serve, the coordinator's end.
func uploading(t *testing.T, path string, complete chan struct{}, serve func(n int, ch *channel), cuts ...int) error {
	t.Helper()
	n := 0
	s := &sender{path: path, complete: complete, limit: 3 * time.Second, connect: func(context.Context) (*channel, error) {
		near, far := net.Pipe()
		if n < len(cuts) {
			far = &cutConn{Conn: far, left: cuts[n]}
		}
		go serve(n, newChannel(far))
		n++
		return newChannel(near), nil
	}}
	return s.run(t.Context())
}

// cutConn is a connection that ends after a number of bytes.
type cutConn struct {
	net.Conn
	left int
}

func (c *cutConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.Join(io.ErrUnexpectedEOF, c.Close())
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// recordedFile returns a file with random bytes.
func recordedFile(t *testing.T, size int) (path string, data []byte) {
	t.Helper()
	data = make([]byte, size)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range data {
		data[i] = byte(rng.IntN(3))
	}
	path = filepath.Join(t.TempDir(), "recorded")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path, data
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// TestUploadResumesAfterReconnect checks that an upload continues after the last acknowledged byte when the
// connection is lost and the file grows. The clock is the test's own. A further connection is right: the
// coordinator ends one when it has everything, and the worker may be sending on it.
func TestUploadResumesAfterReconnect(t *testing.T) { synctest.Test(t, uploadResumes) }

func uploadResumes(t *testing.T) {
	path, data := recordedFile(t, 20*pieceSize+12345)
	growing, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	complete := make(chan struct{})
	go func() {
		for part := range slices.Chunk(data, len(data)/5) {
			_, _ = growing.Write(part)
			time.Sleep(50 * time.Millisecond)
		}
		_ = growing.Close()
		close(complete)
	}()
	u := upload{path: filepath.Join(t.TempDir(), "sent", "x")}
	defer u.close()
	most := 0
	if err := uploading(t, path, complete, func(n int, ch *channel) {
		most = n
		if err := u.take(ch); err != nil {
			t.Error(err)
		}
	}, 100_000, 700_000, 1_100_000, 300_000); err != nil {
		t.Fatal(err)
	}
	came, err := os.ReadFile(u.path)
	if err != nil || !slices.Equal(came, data) || !u.is().Whole || most < 4 {
		t.Errorf("%d bytes of %d came over %d connections, whole %v: %v", len(came), len(data), most+1, u.is().Whole, err)
	}
}

// TestUploadEndsAfterItsTimeLimit checks that the upload ends after its limit if every connection is lost. The
// clock is the test's own.
func TestUploadEndsAfterItsTimeLimit(t *testing.T) { synctest.Test(t, uploadGivesUp) }

func uploadGivesUp(t *testing.T) {
	path, _ := recordedFile(t, 100)
	began := time.Now()
	err := uploading(t, path, closed(), func(_ int, ch *channel) { _ = ch.Close() })
	if err == nil || time.Since(began) < 3*time.Second || time.Since(began) > 6*time.Second {
		t.Errorf("after %v it ends with %v", time.Since(began), err)
	}
}

func drain(ch *channel) {
	for {
		if _, err := ch.receive(); err != nil {
			return
		}
	}
}

// TestWorkerRefusesFalseAcknowledgement checks that a worker refuses an acknowledgement of data that it has not sent.
func TestWorkerRefusesFalseAcknowledgement(t *testing.T) {
	path, data := recordedFile(t, 3*pieceSize)
	sum := func(n int) uint32 { return crc32.Checksum(data[:n], castagnoli) }
	for name, lie := range map[string]func(n int, ch *channel){
		"of bytes that there are not": func(_ int, ch *channel) { _ = ch.send(&message{Ack: &ack{Offset: 1 << 40}}) },
		"of another beginning":        func(_ int, ch *channel) { _ = ch.send(&message{Ack: &ack{Offset: 100, Sum: sum(99)}}) },
		"of a beginning below 0":      func(_ int, ch *channel) { _ = ch.send(&message{Ack: &ack{Offset: -5}}) },
		"of nothing":                  func(_ int, ch *channel) { _ = ch.send(&message{Over: true}) },
		"of another piece": func(_ int, ch *channel) {
			_ = ch.send(&message{Ack: &ack{}})
			_, _ = ch.receive()
			_ = ch.send(&message{Ack: &ack{Offset: 2 * pieceSize, Sum: sum(2 * pieceSize)}})
			drain(ch)
		},
		"of all after the first piece": func(_ int, ch *channel) {
			_ = ch.send(&message{Ack: &ack{}})
			_, _ = ch.receive()
			_ = ch.send(&message{Ack: &ack{Offset: pieceSize, Sum: sum(pieceSize), Whole: true}})
			drain(ch)
		},
		"that forgets": func(n int, ch *channel) {
			if n == 0 {
				_ = ch.send(&message{Ack: &ack{Offset: 100, Sum: sum(100)}})
			} else {
				_ = ch.send(&message{Ack: &ack{}})
			}
			_ = ch.Close()
		},
	} {
		if err := uploading(t, path, closed(), lie); !errors.Is(err, errDisagree) {
			t.Errorf("a coordinator that lies %s: %v", name, err)
		}
	}
	open := make(chan struct{})
	if err := uploading(t, path, open, func(_ int, ch *channel) {
		_ = ch.send(&message{Ack: &ack{Offset: int64(len(data)), Sum: sum(len(data)), Whole: true}})
	}); !errors.Is(err, errDisagree) {
		t.Errorf("a coordinator that has the end before there is one: %v", err)
	}
}

// TestInvalidMessageEndsUpload checks that an invalid message ends the upload and that the worker learns why.
func TestInvalidMessageEndsUpload(t *testing.T) {
	for name, m := range map[string]*message{
		"replayed": {Recording: &piece{Offset: 5, Sum: 1}}, "no piece": {Over: true}, "without a checksum": {Recording: &piece{Data: []byte("plain")}},
	} {
		near, far := net.Pipe()
		u := upload{path: filepath.Join(t.TempDir(), "sent", "x")}
		taken := make(chan error, 1)
		go func() { taken <- u.take(newChannel(far)) }()
		ch := newChannel(near)
		if first, err := ch.greeting(); err != nil || first.Ack == nil || *first.Ack != (ack{}) {
			t.Fatalf("%s: %+v, %v", name, first, err)
		}
		if err := ch.send(m); err != nil {
			t.Fatal(err)
		}
		if heard, err := ch.receive(); name != "no piece" && (err != nil || !strings.Contains(heard.Refused, "altered, lost or sent twice")) {
			t.Errorf("%s: the worker hears %+v, %v", name, heard, err)
		}
		if err := <-taken; !errors.Is(err, errPiece) {
			t.Errorf("%s: it is taken, or %v", name, err)
		}
		u.close()
	}
}
