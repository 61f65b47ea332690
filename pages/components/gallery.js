// Thumbnails as toggle buttons. One is in the tab order; arrow keys, Home and End move between them; a click chooses.
// A choice shows at once, before Python has answered; an answer to an older click is not shown over a newer one.
const galleries = new WeakMap()

function makeButton(item) {
  const button = document.createElement("button")
  button.type = "button"
  button.dataset.id = item.id
  const image = document.createElement("img")
  image.alt = ""
  image.decoding = "async"
  const caption = document.createElement("span")
  caption.className = "caption"
  const badge = document.createElement("span")
  badge.className = "badge"
  button.append(image, caption, badge)
  return button
}

function fillButton(button, item) {
  const [image, caption, badge] = button.children
  if (image.src !== item.image) image.src = item.image
  caption.textContent = item.caption
  button.title = item.caption
  badge.textContent = item.badge
  badge.hidden = !item.badge
}

function press(strip, id) {
  let tab = null
  for (const button of strip.children) {
    const on = button.dataset.id === id
    button.setAttribute("aria-pressed", String(on))
    if (on) tab = button
  }
  tab = tab ?? strip.firstElementChild
  for (const button of strip.children) button.tabIndex = button === tab ? 0 : -1
  return tab
}

// Scrolls the strip alone, never the page.
function reveal(strip, button) {
  if (!button) return
  const outer = strip.getBoundingClientRect()
  const inner = button.getBoundingClientRect()
  if (inner.left < outer.left) strip.scrollLeft += inner.left - outer.left - 8
  if (inner.right > outer.right) strip.scrollLeft += inner.right - outer.right + 8
  if (inner.top < outer.top) strip.scrollTop += inner.top - outer.top - 8
  if (inner.bottom > outer.bottom) strip.scrollTop += inner.bottom - outer.bottom + 8
}

function columnsOf(strip) {
  const top = strip.firstElementChild.offsetTop
  let count = 0
  while (strip.children[count] && strip.children[count].offsetTop === top) count += 1
  return count
}

function moveFocus(strip, event) {
  const all = [...strip.children]
  const at = all.indexOf(event.target.closest("button"))
  const row = columnsOf(strip)
  const goals = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + row, ArrowUp: at - row, Home: 0, End: all.length - 1 }
  if (at < 0 || !(event.key in goals)) return
  event.preventDefault()
  const next = all[Math.min(all.length - 1, Math.max(0, goals[event.key]))]
  for (const button of all) button.tabIndex = button === next ? 0 : -1
  next.focus({ preventScroll: true })
  reveal(strip, next)
}

export default function ({ parentElement, data, setStateValue }) {
  const strip = parentElement.querySelector(".strip")
  let own = galleries.get(parentElement)
  if (!own) galleries.set(parentElement, (own = { pending: null, shown: null }))
  strip.setAttribute("aria-label", data.label)
  strip.style.maxHeight = data.height ? `${data.height}px` : ""
  const old = new Map([...strip.children].map((button) => [button.dataset.id, button]))
  data.items.forEach((item, index) => {
    const button = old.get(item.id) ?? makeButton(item)
    old.delete(item.id)
    fillButton(button, item)
    if (strip.children[index] !== button) strip.insertBefore(button, strip.children[index] ?? null)
  })
  for (const button of old.values()) button.remove()
  strip.onkeydown = (event) => moveFocus(strip, event)
  strip.onclick = (event) => {
    const button = event.target.closest("button")
    if (!button) return
    own.pending = `${Date.now()}-${Math.random()}`
    press(strip, button.dataset.id)
    setStateValue("click", { id: button.dataset.id, mark: own.pending })
  }
  if (own.pending && own.pending !== data.mark) return
  own.pending = null
  const chosen = press(strip, data.selected)
  if (own.shown !== data.selected) reveal(strip, chosen)
  own.shown = data.selected
}
