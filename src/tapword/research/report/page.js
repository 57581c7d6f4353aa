// Copies tables and texts, sorts the table of results, picks one result, lights up one line.
const all=(q,r=document)=>[...r.querySelectorAll(q)];
document.documentElement.classList.add('js');
async function copy(text,button){
 try{await navigator.clipboard.writeText(text)}
 catch{const area=document.body.appendChild(document.createElement('textarea'));
  area.value=text;area.select();document.execCommand('copy');area.remove();button.focus()}
 const old=button.dataset.old??=button.textContent;
 button.textContent='Copied';setTimeout(()=>button.textContent=old,1500)}
const value=cell=>cell.dataset.v??cell.textContent;
all('[data-copy]').forEach(button=>button.onclick=()=>{
 const from=document.getElementById(button.dataset.copy);
 copy(from.rows?[...from.rows].map(row=>[...row.cells].map(value).join('\t')).join('\n')
  :from.textContent,button)});
all('#results th button').forEach(button=>button.onclick=()=>{
 const head=button.parentNode,body=head.closest('table').tBodies[0],at=head.cellIndex;
 const down=head.getAttribute('aria-sort')==='ascending';
 all('th',head.parentNode).forEach(other=>other.removeAttribute('aria-sort'));
 head.setAttribute('aria-sort',down?'descending':'ascending');
 const key=row=>row.cells[at]?value(row.cells[at]):'';
 [...body.rows].sort((a,b)=>{const x=key(a),y=key(b);
  if(x===''||y==='')return(x==='')-(y==='');
  return(down?-1:1)*(x-y||x.localeCompare(y))}).forEach(row=>body.append(row))});
all('#pick').forEach(pick=>{
 const show=()=>all('article').forEach(part=>part.hidden=part.id!==pick.value);
 pick.onchange=show;show()});
all('.lines').forEach(figure=>{
 const light=event=>{const item=event.target.closest('[data-line]');
  const on=item&&!/leave|out/.test(event.type);
  figure.classList.toggle('picking',!!on);
  all('[data-line]',figure).forEach(line=>
   line.classList.toggle('picked',!!on&&line.dataset.line===item.dataset.line))};
 ['pointerover','pointerleave','focusin','focusout'].forEach(on=>figure.addEventListener(on,light))});
