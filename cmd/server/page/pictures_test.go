package page_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/chromedp/chromedp"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// pictures are in the documentation, and what the page is compared with.
const pictures = "../../../docs/guides/page"

// inDocs are the widths and themes of the pictures that are kept, of every view.
var inDocs = []string{"1280-light", "1280-dark", "390-light"}

// A picture is another one if more of its pixels than mostOther differ by more than nearColor in a colour, which kept
// pictures may since they have few colours.
const (
	mostOther = 0.005
	nearColor = 48
)

// looks compares the page with the kept picture of a name. Dates are a thousandth of the pixels.
func (b *tab) looks(name string) {
	b.t.Helper()
	if !b.sameFonts() {
		b.t.Log("pictures are not compared: the fonts of this machine are not those of fonts-dejavu-core")
		return
	}
	var shot []byte
	b.run(chromedp.FullScreenshot(&shot, 100))
	got, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		b.t.Fatal(err)
	}
	file := filepath.Join(pictures, name+".png")
	if spectest.Rewrite() {
		writePicture(b, file, got)
		return
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatalf("%v; go test -run BrowserViews -rewrite makes it", err)
	}
	want, err := png.Decode(bytes.NewReader(kept))
	if err != nil {
		b.t.Fatal(err)
	}
	if share := otherPixels(got, want); share > mostOther {
		seen := filepath.Join(os.TempDir(), "pacer-page-"+name+".png")
		writePicture(b, seen, got)
		b.t.Errorf("%.2f %% of the pixels of %s differ from those of %s; if it looks right, go test -run BrowserViews -rewrite renews it", 100*share, seen, file)
	}
}

// otherPixels is the share of pixels in which two pictures differ; 1 if their sizes differ.
func otherPixels(a, b image.Image) float64 {
	if a.Bounds() != b.Bounds() {
		return 1
	}
	n, size := 0, a.Bounds()
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			p, q := color.NRGBAModel.Convert(a.At(x, y)).(color.NRGBA), color.NRGBAModel.Convert(b.At(x, y)).(color.NRGBA)
			if far(p.R, q.R) || far(p.G, q.G) || far(p.B, q.B) {
				n++
			}
		}
	}
	return float64(n) / float64(size.Dx()*size.Dy())
}

func far(a, b uint8) bool { return max(a, b)-min(a, b) > nearColor }

// writePicture writes a picture with its 64 most frequent colours.
func writePicture(b *tab, file string, m image.Image) {
	b.t.Helper()
	count := map[color.NRGBA]int{}
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			count[color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)]++
		}
	}
	var colors color.Palette
	for c := range count {
		colors = append(colors, c)
	}
	slices.SortFunc(colors, func(a, b color.Color) int {
		p, q := a.(color.NRGBA), b.(color.NRGBA)
		if n := count[q] - count[p]; n != 0 {
			return n
		}
		return (int(p.R)<<16 | int(p.G)<<8 | int(p.B)) - (int(q.R)<<16 | int(q.G)<<8 | int(q.B))
	})
	few := image.NewPaletted(m.Bounds(), colors[:min(len(colors), 64)])
	draw.Draw(few, few.Bounds(), m, m.Bounds().Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// sameFonts reports whether text is as wide as in the kept pictures.
func (b *tab) sameFonts() bool {
	b.t.Helper()
	widths := eval[[]float64](b, `["system-ui", "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"].map((family) => {
		const c = document.createElement("canvas").getContext("2d"); c.font = "100px " + family; return c.measureText("Hamburgefonstiv 0123456789").width; })`)
	return math.Abs(widths[0]-1531.2) < 0.3 && math.Abs(widths[1]-1565.3) < 0.3
}
