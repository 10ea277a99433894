# gnuplot 001_steps.gp makes 001_steps.svg.
set terminal svg size 900,600
set output '001_steps.svg'
set datafile missing '?'
set title "The article's steps: AES-256 on 64 MiB"
set xlabel 'step'
set ylabel 'bytes_per_second'
set key left top
set xtics rotate by -20
set yrange [0:*]
plot '001_steps.dat' using 2:xtic(1) with linespoints title "encryption, kernel, GB/s", \
  '001_steps.dat' using 3:xtic(1) with linespoints title "encryption with copies, GB/s", \
  '001_steps.dat' using 4:xtic(1) with linespoints title "decryption, kernel, GB/s", \
  '001_steps.dat' using 5:xtic(1) with linespoints title "decryption with copies, GB/s"
