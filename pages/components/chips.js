// The legend: a toggle button for each thing on the picture, with a sample of its line or texture.

function sampleOf(id, colour, dash) {
  const line = (stroke, width, dashes = "") => `<path d="M1 6H25" fill="none" stroke="${stroke}" stroke-width="${width}" stroke-dasharray="${dashes}"/>`
  if (id === "missed") {
    const strokes = [0, 7, 14, 21].map((x) => `M${x} 11l6 -10`).join("")
    return `<rect width="26" height="12" rx="2" fill="#444b54"/><path d="${strokes}" stroke="#fff" stroke-width="1.6"/>`
  }
  if (id === "false") {
    const dots = [5, 13, 21].map((x) => `<circle cx="${x}" cy="6" r="1.5" fill="#fff"/>`).join("")
    return `<rect width="26" height="12" rx="2" fill="#444b54"/>${dots}`
  }
  if (id === "truth") return line("#16191D", 5) + line("#fff", 2)
  return line("#16191D", id === "own" ? 5 : 6) + line(colour, id === "own" ? 2.4 : 3.4, dash.map((part) => part * 0.8).join(" "))
}

// [id, words, colour, dash, what it is] of everything that can be shown or hidden
function legendOf(own) {
  const { data, field } = own
  const wiped = data.mode === "wipe"
  const marks = wiped ? data.wipe.map((name) => data.marks.find((mark) => mark.name === name)) : data.marks
  const list = marks.map((mark) => [mark.name, mark.name, mark.colour, mark.dash, `Outline of the set of ${mark.name}`])
  if (!wiped) list.push(["own", "your threshold", OWN_COLOUR, [], "Outline at the threshold that you set"])
  if (field.lesion) list.push(["truth", "truth", "#fff", [], "Outline of the lesion"])
  if (field.lesion) list.push(["missed", "missed", "", [], "Lesion outside the set, hatched"])
  if (field.truth && !wiped) list.push(["false", "false alarm", "", [], "Marked, but no lesion: dotted"])
  return list
}

function showChips(own) {
  const box = own.parts.chips
  const list = legendOf(own)
  const names = list.map(([id]) => id).join()
  if (box.dataset.names !== names) {
    box.dataset.names = names
    box.replaceChildren(...list.map(([id, words, colour, dash, what]) => {
      const button = document.createElement("button")
      button.type = "button"
      button.title = what
      button.dataset.id = id
      button.innerHTML = `<svg viewBox="0 0 26 12" aria-hidden="true">${sampleOf(id, colour, dash)}</svg><span class="name"></span>`
      button.querySelector(".name").textContent = words
      return button
    }))
  }
  for (const button of box.children) button.setAttribute("aria-pressed", String(!own.memory.hidden.has(button.dataset.id)))
  box.onclick = (event) => {
    const button = event.target.closest("button")
    if (!button) return
    const { hidden } = own.memory
    if (!hidden.delete(button.dataset.id)) hidden.add(button.dataset.id)
    button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.id)))
    own.prepare()
    own.redraw()
  }
}
