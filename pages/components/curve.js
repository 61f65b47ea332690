// The curve beside the picture: share of the lesion inside and share of the image marked, against the threshold.
// The axis is straight in logits and labelled in probabilities.
const TICKS = ["0.5", "0.1", "0.9", "0.01", "0.99", "0.001", "0.999", "0.0001", "0.9999", "0.00001", "0.99999"] // the first win
const TEXT = 13.5

// Where labels of given widths begin so that none overlaps: labels that touch become a block, and a block stands where its
// labels are as near to their wishes as it goes.
function spread(wishes, widths, left, right, gap = 9) {
  const order = wishes.map((_, i) => i).sort((a, b) => wishes[a] - wishes[b])
  const blocks = []
  for (const i of order) {
    let block = { members: [[i, 0]], length: widths[i], sum: wishes[i] - widths[i] / 2 }
    const place = (b) => Math.min(Math.max(b.sum / b.members.length, left), right - b.length)
    block.start = place(block)
    while (blocks.length && blocks.at(-1).start + blocks.at(-1).length + gap > block.start) {
      const before = blocks.pop()
      const shift = before.length + gap
      before.members.push(...block.members.map(([member, at]) => [member, at + shift]))
      before.sum += block.sum - shift * block.members.length
      before.length += gap + block.length
      before.start = place(before)
      block = before
    }
    blocks.push(block)
  }
  const starts = []
  for (const block of blocks) for (const [member, at] of block.members) starts[member] = block.start + at
  return starts
}

class Curve {
  constructor(canvas) {
    this.canvas = canvas
    this.box = { left: 50, right: 0, top: 64, bottom: 0 }
  }

  size(width, height, ratio) {
    this.width = width
    this.height = height
    this.ratio = ratio
    this.canvas.width = Math.round(width * ratio)
    this.canvas.height = Math.round(height * ratio)
    this.box.right = width - 10
    this.box.bottom = height - 46
    this.back = makeCanvas(this.canvas.width, this.canvas.height)
  }

  x(field, logit) {
    const part = (Math.min(Math.max(logit, field.low), field.high) - field.low) / (field.high - field.low)
    return this.box.left + part * (this.box.right - this.box.left)
  }

  y(share) {
    return this.box.bottom - share * (this.box.bottom - this.box.top)
  }

  // the threshold under a pointer at x pixels from the left
  logitAt(field, x) {
    const part = (x - this.box.left) / (this.box.right - this.box.left)
    return field.low + Math.min(Math.max(part, 0), 1) * (field.high - field.low)
  }

  // everything that stays while the threshold moves
  prepare(field, marks, target, theme) {
    const c = this.back.getContext("2d")
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0)
    c.clearRect(0, 0, this.width, this.height)
    c.font = `${TEXT}px ${theme.font}`
    c.textBaseline = "middle"
    this.drawAxes(c, field, theme)
    this.drawKey(c, field, theme)
    if (field.lesion) this.drawTarget(c, target, theme)
    this.drawLine(c, field, (code) => field.area(code), theme.text, 2, [2, 3.5])
    if (field.lesion) this.drawLine(c, field, (code) => field.coverage(code), theme.text, 2.8, [])
    this.drawMarks(c, field, marks, theme)
  }

  drawAxes(c, field, theme) {
    const { left, right, top, bottom } = this.box
    c.strokeStyle = theme.border
    c.fillStyle = theme.text
    c.lineWidth = 1
    c.textAlign = "right"
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const y = Math.round(this.y(share)) + 0.5
      c.beginPath()
      c.moveTo(left, y)
      c.lineTo(right, y)
      c.stroke()
      c.fillText(`${share * 100}${GAP}%`, left - 7, y)
    }
    c.textAlign = "center"
    const taken = []
    for (const label of TICKS) {
      const logit = Math.log(label / (1 - label))
      if (logit < field.low || logit > field.high) continue
      const x = this.x(field, logit)
      const half = c.measureText(label).width / 2 + 6
      if (taken.some(([a, b]) => x + half > a && x - half < b) || x + half - 6 > this.width) continue
      taken.push([x - half, x + half])
      c.beginPath()
      c.moveTo(x, bottom)
      c.lineTo(x, bottom + 5)
      c.stroke()
      c.fillText(label, x, bottom + 15)
    }
    c.fillText("threshold", (left + right) / 2, bottom + 35)
  }

  drawKey(c, field, theme) {
    let x = this.box.left
    c.textAlign = "left"
    c.strokeStyle = c.fillStyle = theme.text
    for (const [label, width, dash] of [["lesion inside", 2.8, []], ["image marked", 2, [2, 3.5]]]) {
      if (label === "lesion inside" && !field.lesion) continue
      c.lineWidth = width
      c.setLineDash(dash)
      c.beginPath()
      c.moveTo(x, 10)
      c.lineTo(x + 24, 10)
      c.stroke()
      c.setLineDash([])
      c.fillText(label, x + 30, 10.5)
      x += 30 + c.measureText(label).width + 18
    }
  }

  drawTarget(c, target, theme) {
    const y = this.y(target)
    c.strokeStyle = theme.text
    c.lineWidth = 1.2
    c.setLineDash([7, 5])
    c.beginPath()
    c.moveTo(this.box.left, y)
    c.lineTo(this.box.right, y)
    c.stroke()
    c.setLineDash([])
    this.halo(c, `target ${sayShare(target)}`, this.box.right - 2, y + 11, "right", theme)
  }

  halo(c, text, x, y, align, theme) {
    c.textAlign = align
    c.lineJoin = "round"
    c.strokeStyle = theme.background
    c.lineWidth = 5
    c.strokeText(text, x, y)
    c.fillStyle = theme.text
    c.fillText(text, x, y)
  }

  drawLine(c, field, share, colour, width, dash) {
    const { left, right } = this.box
    c.strokeStyle = colour
    c.lineWidth = width
    c.lineJoin = "round"
    c.setLineDash(dash)
    c.beginPath()
    for (let x = left; x <= right; x += 0.5) c.lineTo(x, this.y(share(codeOf(this.logitAt(field, x)))))
    c.stroke()
    c.setLineDash([])
  }

  drawMarks(c, field, marks, theme) {
    const { left, right, top, bottom } = this.box
    const labels = marks.map((mark) => mark.name)
    const widths = labels.map((label) => c.measureText(label).width)
    const wishes = marks.map((mark) => this.x(field, mark.logit))
    const starts = spread(wishes, widths, left - 20, right)
    marks.forEach((mark, i) => {
      const middle = starts[i] + widths[i] / 2
      c.strokeStyle = mark.colour
      c.lineWidth = 2.4
      c.beginPath()
      c.moveTo(starts[i], 45)
      c.lineTo(starts[i] + widths[i], 45)
      c.moveTo(middle, 45)
      c.lineTo(middle, 48)
      c.lineTo(wishes[i], top - 4)
      c.stroke()
      c.setLineDash(mark.dash)
      c.beginPath()
      c.moveTo(wishes[i], top - 4)
      c.lineTo(wishes[i], bottom)
      c.stroke()
      c.setLineDash([])
      c.fillStyle = theme.text
      c.textAlign = "left"
      c.fillText(labels[i], starts[i], 35)
    })
  }

  // the cursor, over what was prepared
  draw(field, logit, code, theme) {
    const c = this.canvas.getContext("2d")
    c.setTransform(1, 0, 0, 1, 0, 0)
    c.clearRect(0, 0, this.canvas.width, this.canvas.height)
    c.drawImage(this.back, 0, 0)
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0)
    const x = this.x(field, logit)
    c.strokeStyle = theme.text
    c.lineWidth = 1.4
    c.beginPath()
    c.moveTo(x, this.box.top)
    c.lineTo(x, this.box.bottom)
    c.stroke()
    c.lineWidth = 2
    c.fillStyle = OWN_COLOUR
    for (const share of field.lesion ? [field.area(code), field.coverage(code)] : [field.area(code)]) {
      c.beginPath()
      c.arc(x, this.y(share), 6, 0, 2 * Math.PI)
      c.fill()
      c.stroke()
    }
  }
}
